/**
 * The format of the gateway's configuration document, as written by the gateway and accepted by our API: its text and
 * hash, its dotted paths, its agents. `commands/` has the changes.
 */
import { createHash } from 'node:crypto';
import { AppError } from '../../errors.ts';
import { frontOf, isObject } from '../../storable.ts';

export type GatewayDocument = Readonly<Record<string, unknown>>;

/**
 * The document as text, from which `hash` and `raw_size` are computed. Without indentation, which would grow with every
 * level.
 */
export const documentText = (document: GatewayDocument | null): string =>
  document === null ? '' : JSON.stringify(document);

/** SHA-256, hex. */
export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

const POLLUTING = ['__proto__', 'prototype', 'constructor'];

/** Why a dotted path cannot be set; undefined when it can. */
export function pathProblem(path: string): string | undefined {
  const segments = path.split('.');
  if (segments.some((segment) => segment === '')) return 'has an empty segment';
  if (segments.some((segment) => POLLUTING.includes(segment))) return 'has a segment that is not allowed';
  return undefined;
}

/** Keys of an entry that belong in an agent's config. */
export const ENTRY_KEYS = [
  'model',
  'identity',
  'sandbox',
  'tools',
  'subagents',
  'memorySearch',
  'workspace',
  'isDefault',
] as const;

/** An agent as the document describes it. */
export interface GatewayAgent {
  /** Id of the entry. */
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly config: Readonly<Record<string, unknown>>;
}

const text = (value: unknown): string | undefined => {
  const trimmed = typeof value === 'string' ? value.trim() : '';
  return trimmed === '' ? undefined : frontOf(trimmed, 100);
};

/** An agent's entry in the document. */
export type Entry = Readonly<Record<string, unknown>>;

/** The entries of the agents list: `agents.list`, or `agents` itself, as a list or as an object by id. */
export function entriesOf(document: GatewayDocument): Entry[] {
  const { agents } = document;
  const list = isObject(agents) && 'list' in agents ? agents.list : agents;
  if (Array.isArray(list)) return list.filter(isObject);
  if (!isObject(list)) return [];
  return Object.entries(list).flatMap(([id, entry]) => (isObject(entry) ? [{ id, ...entry }] : []));
}

const identityOf = ({ identity }: Entry): Entry => (isObject(identity) ? identity : {});

/** The agent's name according to its entry; undefined if there is none. */
export const nameOf = (entry: Entry): string | undefined => text(identityOf(entry).name) ?? text(entry.name);

/** The agents of a document; entries without a name are left out, as are later ones with the same name. */
export function agentsOf(document: GatewayDocument): GatewayAgent[] {
  const found = new Map<string, GatewayAgent>();
  for (const entry of entriesOf(document)) {
    const name = nameOf(entry) ?? text(entry.id);
    if (name === undefined || found.has(name)) continue;
    const config = Object.fromEntries(
      ENTRY_KEYS.filter((key) => entry[key] !== undefined).map((key) => [key, entry[key]]),
    );
    // Gateways write `default`; our records say `isDefault`.
    if (entry.default === true && config.isDefault === undefined) config.isDefault = true;
    found.set(name, { id: text(entry.id) ?? slug(name), name, role: text(identityOf(entry).theme) ?? 'agent', config });
  }
  return [...found.values()];
}

/** The agents of a document. @throws AppError 422 unless they are in a list or an object */
export function readableAgents(document: GatewayDocument): GatewayAgent[] {
  const { agents } = document;
  const list = isObject(agents) && 'list' in agents ? agents.list : agents;
  const place = list === agents ? 'agents' : 'agents.list';
  const fails = (reason: string) => new AppError(422, `The gateway configuration cannot be imported: ${reason}.`);
  if (Array.isArray(list)) {
    const at = list.findIndex((entry) => !isObject(entry));
    if (at >= 0) throw fails(`${place}.${at} must be an object with the settings of an agent`);
  } else if (list !== undefined && !isObject(list)) throw fails(`${place} must be a list or an object`);
  return agentsOf(document);
}

/** `config` with the gateway's keys taken from the document; its other keys are kept. */
export function withGatewayKeys(config: GatewayDocument, fromGateway: GatewayDocument): Record<string, unknown> {
  const own = Object.entries(config).filter(([key]) => !(ENTRY_KEYS as readonly string[]).includes(key));
  return { ...Object.fromEntries(own), ...fromGateway };
}

/** `Data Keeper 2` → `data-keeper-2` */
export const slug = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '') || 'agent';
