/** Agent templates: the initial config, and how it is merged with the caller's input. */
import { isObject } from '../../shared/storable.ts';
import { valueAt, withValue } from '../admin/gateway-document.ts';

type Config = Readonly<Record<string, unknown>>;

const OPUS = 'anthropic/claude-opus-4-5';
const SONNET = 'anthropic/claude-sonnet-4-20250514';
const HAIKU = 'anthropic/claude-haiku-4-5';

interface Template {
  readonly theme: string;
  readonly emoji: string;
  readonly model: { readonly primary: string; readonly fallbacks: readonly string[] };
  readonly sandbox: {
    readonly mode: string;
    readonly workspaceAccess: string;
    readonly docker?: { readonly network: string };
  };
  readonly subagents?: { readonly allowAgents: readonly string[] };
  readonly memory: readonly string[];
}

const builder: Pick<Template, 'model' | 'sandbox' | 'memory'> = {
  model: { primary: SONNET, fallbacks: [HAIKU] },
  sandbox: { mode: 'all', workspaceAccess: 'rw', docker: { network: 'bridge' } },
  memory: ['memory'],
};

const TEMPLATES: Readonly<Record<string, Template>> = {
  orchestrator: {
    theme: 'operator strategist',
    emoji: '🧭',
    model: { primary: OPUS, fallbacks: [SONNET] },
    sandbox: { mode: 'non-main', workspaceAccess: 'rw' },
    subagents: { allowAgents: ['*'] },
    memory: ['memory', 'sessions'],
  },
  developer: { theme: 'builder engineer', emoji: '🛠️', ...builder },
  'specialist-dev': { theme: 'specialist developer', emoji: '⚙️', ...builder },
  reviewer: {
    theme: 'quality reviewer',
    emoji: '🔎',
    model: { primary: HAIKU, fallbacks: [SONNET] },
    sandbox: { mode: 'all', workspaceAccess: 'ro' },
    memory: ['memory'],
  },
  researcher: {
    theme: 'research analyst',
    emoji: '📚',
    model: { primary: SONNET, fallbacks: [HAIKU] },
    sandbox: { mode: 'all', workspaceAccess: 'none' },
    memory: ['memory'],
  },
  'content-creator': {
    theme: 'content creator',
    emoji: '✍️',
    model: { primary: HAIKU, fallbacks: [SONNET] },
    sandbox: { mode: 'all', workspaceAccess: 'none' },
    memory: ['memory'],
  },
  'security-auditor': {
    theme: 'security auditor',
    emoji: '🛡️',
    model: { primary: SONNET, fallbacks: [HAIKU] },
    sandbox: { mode: 'all', workspaceAccess: 'ro' },
    memory: ['memory'],
  },
};

/** The config of a template for an agent of this name; undefined for an unknown template. */
export function templateConfig(id: string, name: string): Config | undefined {
  if (!Object.hasOwn(TEMPLATES, id)) return undefined;
  const { theme, emoji, model, sandbox, subagents, memory } = TEMPLATES[id] as Template;
  return {
    model: { ...model, fallbacks: [...model.fallbacks] },
    identity: { name, theme, emoji },
    sandbox: { ...sandbox, scope: 'agent' },
    // Only the gateway knows which tools exist, so operators fill these in.
    tools: { allow: [], deny: [] },
    ...(subagents && { subagents: { allowAgents: [...subagents.allowAgents] } }),
    memorySearch: { sources: [...memory] },
  };
}

/** The keys of a gateway_config that override the template. */
const PICKED = [
  'model.primary',
  'identity.emoji',
  'identity.theme',
  'sandbox.workspaceAccess',
  'sandbox.mode',
  'sandbox.docker.network',
  'subagents.allowAgents',
];

/**
 * The config of a new agent. With a known template: the template, overridden by some values of `gateway_config`, then
 * by the keys of `config`. Without a template: `config`, overridden by the keys of `gateway_config`. An unknown
 * template is ignored, and so is `gateway_config` in that case.
 */
export function configFor(input: {
  readonly name: string;
  readonly template?: string | null;
  readonly config?: Config;
  readonly gateway_config?: Config;
}): { readonly config: Record<string, unknown>; readonly template: string | null } {
  const { name, template, config = {}, gateway_config = {} } = input;
  if (!template) return { config: { ...config, ...gateway_config }, template: null };
  let base = templateConfig(template, name);
  if (!base) return { config: { ...config }, template: null };
  for (const path of PICKED) {
    const value = valueAt(gateway_config, path);
    if (value !== undefined && !isObject(value)) base = withValue(base, path, value);
  }
  return { config: { ...base, ...config }, template };
}
