/**
 * The gateway's configuration document as data: how agents stand in it, what may be changed, and what is hidden when
 * it is shown. Pure; commands and queries share it.
 */
import { createHash } from 'node:crypto';
import { AppError } from '../../errors.ts';
import { type Bounds, frontOf, VALUE_BOUNDS } from '../../storable.ts';

export type GatewayDocument = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Sealed, a document of this size fits into one event. */
export const DOCUMENT_BOUNDS: Bounds = { depth: VALUE_BOUNDS.depth, characters: 700_000 };

/** The document as text: what `hash` and `raw_size` are of. Without indentation, which would grow with every level. */
export const documentText = (document: GatewayDocument | null): string =>
  document === null ? '' : JSON.stringify(document);

/** SHA-256, hex. */
export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

// --- Paths ------------------------------------------------------------------------------------------------------------

/** May not be changed through the API: whoever could would take the gateway over. */
export const PROTECTED_PATHS = ['gateway.auth.password', 'gateway.auth.secret', 'gateway.auth.token'] as const;
const POLLUTING = ['__proto__', 'prototype', 'constructor'];

/** Why a dotted path cannot be set; undefined when it can. */
export function pathProblem(path: string): string | undefined {
  const segments = path.split('.');
  if (segments.some((segment) => segment === '')) return 'has an empty segment';
  if (segments.some((segment) => POLLUTING.includes(segment))) return 'has a segment that is not allowed';
  return undefined;
}

/** True when setting `path` to `value` would change something protected. */
export function touchesProtected(path: string, value: unknown): boolean {
  return PROTECTED_PATHS.some((guarded) => {
    if (path === guarded || path.startsWith(`${guarded}.`)) return true;
    if (!guarded.startsWith(`${path}.`)) return false;
    // An object above a protected place is fine as long as it says nothing about that place.
    return !isObject(value) || valueAt(value, guarded.slice(path.length + 1)) !== undefined;
  });
}

/** The value at a dotted path; undefined when there is none. */
export function valueAt(document: unknown, path: string): unknown {
  let current = document;
  for (const segment of path.split('.')) {
    if (!isObject(current) || !Object.hasOwn(current, segment)) return undefined;
    current = current[segment];
  }
  return current;
}

/** A copy with `value` at a dotted path; objects on the way are made. */
export function withValue(document: GatewayDocument, path: string, value: unknown): GatewayDocument {
  const [head = '', ...rest] = path.split('.');
  if (rest.length === 0) return { ...document, [head]: value };
  const inner = Object.hasOwn(document, head) ? document[head] : undefined;
  return { ...document, [head]: withValue(isObject(inner) ? inner : {}, rest.join('.'), value) };
}

// --- Agents -----------------------------------------------------------------------------------------------------------

/** Keys of an entry that make up an agent's config. */
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

type Entry = Readonly<Record<string, unknown>>;

/** The entries of the agents list: `agents.list`, or `agents` itself, as a list or as an object by id. */
function entriesOf(document: GatewayDocument): Entry[] {
  const { agents } = document;
  const list = isObject(agents) && 'list' in agents ? agents.list : agents;
  if (Array.isArray(list)) return list.filter(isObject);
  if (!isObject(list)) return [];
  return Object.entries(list).flatMap(([id, entry]) => (isObject(entry) ? [{ id, ...entry }] : []));
}

/** The agents of a document; entries without any name are left out, and so is a second one of the same name. */
export function agentsOf(document: GatewayDocument): GatewayAgent[] {
  const found = new Map<string, GatewayAgent>();
  for (const entry of entriesOf(document)) {
    const identity = isObject(entry.identity) ? entry.identity : {};
    const name = text(identity.name) ?? text(entry.name) ?? text(entry.id);
    if (name === undefined || found.has(name)) continue;
    const config = Object.fromEntries(
      ENTRY_KEYS.filter((key) => entry[key] !== undefined).map((key) => [key, entry[key]]),
    );
    // `default` is what gateways write; the record says `isDefault`.
    if (entry.default === true && config.isDefault === undefined) config.isDefault = true;
    found.set(name, { id: text(entry.id) ?? slug(name), name, role: text(identity.theme) ?? 'agent', config });
  }
  return [...found.values()];
}

/** The agents of a document. @throws AppError 422 when its list of agents is none */
export function readableAgents(document: GatewayDocument): GatewayAgent[] {
  const { agents } = document;
  const list = isObject(agents) && 'list' in agents ? agents.list : agents;
  const place = list === agents ? 'agents' : 'agents.list';
  const fails = (reason: string) => new AppError(422, `The gateway configuration cannot be imported: ${reason}.`);
  if (Array.isArray(list)) {
    const at = list.findIndex((entry) => !isObject(entry));
    if (at >= 0) throw fails(`${place}.${at} is no object with the settings of an agent`);
  } else if (list !== undefined && !isObject(list)) throw fails(`${place} is neither a list nor an object`);
  return agentsOf(document);
}

/** `config` with the gateway's keys as the document has them; keys that are not the gateway's stay. */
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

const WRITTEN_KEYS = ['model', 'identity', 'sandbox', 'tools', 'subagents', 'memorySearch'] as const;

/** Whether an entry is the agent's: by its name, or by its id when it says no name. */
function isEntryOf(entry: unknown, name: string): boolean {
  if (!isObject(entry)) return false;
  const identity = isObject(entry.identity) ? entry.identity : {};
  const said = text(identity.name) ?? text(entry.name);
  return said === undefined ? entry.id === name || entry.id === slug(name) : said === name;
}

/** A slug of `name` that no entry has as its id. */
function freeId(entries: readonly Entry[], name: string): string {
  const taken = new Set(entries.map((entry) => entry.id));
  const wanted = slug(name);
  let id = wanted;
  for (let number = 2; taken.has(id); number++) id = `${wanted}-${number}`;
  return id;
}

/** A copy in which the agent's entry is changed by `edit`; undefined from `edit` removes it, undefined to it means new. */
function editEntry(
  document: GatewayDocument,
  name: string,
  edit: (entry: Entry | undefined) => Entry | undefined,
): GatewayDocument {
  const { agents } = document;
  const nested = !Array.isArray(agents) && (!isObject(agents) || 'list' in agents || Object.keys(agents).length === 0);
  const around = isObject(agents) ? agents : {};
  const list = nested ? (around.list ?? []) : agents;
  const put = (next: unknown): GatewayDocument => ({ ...document, agents: nested ? { ...around, list: next } : next });
  if (Array.isArray(list)) {
    const at = list.findIndex((entry) => isEntryOf(entry, name));
    const edited = edit(at < 0 ? undefined : (list[at] as Entry));
    if (at < 0) return put(edited === undefined ? list : [...list, edited]);
    return put(edited === undefined ? list.toSpliced(at, 1) : list.with(at, edited));
  }
  const byId = isObject(list) ? list : {};
  const id =
    Object.keys(byId).find((key) => isEntryOf({ id: key, ...(byId[key] as Entry) }, name)) ??
    freeId(
      Object.keys(byId).map((key) => ({ id: key })),
      name,
    );
  const { [id]: before, ...others } = byId;
  const edited = edit(isObject(before) ? before : undefined);
  return put(edited === undefined ? others : { ...byId, [id]: edited });
}

/** A copy in which the agent has an entry with what its config says of the gateway. `before`: its name so far. */
export function withAgent(
  document: GatewayDocument,
  agent: { readonly name: string; readonly config: GatewayDocument; readonly before?: string },
): GatewayDocument {
  const { name, config, before = name } = agent;
  const written = Object.fromEntries(
    WRITTEN_KEYS.filter((key) => config[key] !== undefined).map((key) => [key, config[key]]),
  );
  if (isObject(written.identity)) written.identity = { ...written.identity, name };
  return editEntry(document, before, (entry) => ({
    ...(entry ?? { id: freeId(entriesOf(document), name) }),
    name,
    ...written,
  }));
}

/** The agent's entry; undefined when it has none. */
export function entryOf(document: GatewayDocument, name: string): GatewayDocument | undefined {
  let found: Entry | undefined;
  editEntry(document, name, (entry) => {
    found = entry;
    return entry;
  });
  return found;
}

/** A copy in which the agent's entry is another one, or gone. */
export const withEntry = (document: GatewayDocument, name: string, entry: GatewayDocument | undefined) =>
  editEntry(document, name, () => entry);

/** A copy without the agent's entry; the same object when it has none. */
export function withoutAgent(document: GatewayDocument, name: string): GatewayDocument {
  if (!entriesOf(document).some((entry) => isEntryOf(entry, name))) return document;
  return editEntry(document, name, () => undefined);
}
