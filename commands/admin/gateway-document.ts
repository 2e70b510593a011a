/** Changes to the gateway's configuration document: which are allowed, and the changed copies. Pure functions. */
import {
  type Entry,
  entriesOf,
  type GatewayDocument,
  nameOf,
  slug,
} from '../../shared/contract/admin/gateway-document.ts';
import { type Bounds, isObject, VALUE_BOUNDS } from '../../shared/storable.ts';

/** A document of at most this size, sealed, fits into one event. */
export const DOCUMENT_BOUNDS: Bounds = { depth: VALUE_BOUNDS.depth, characters: 700_000 };

/** Paths that must not be changed through the API, because that would allow a takeover of the gateway. */
export const PROTECTED_PATHS = ['gateway.auth.password', 'gateway.auth.secret', 'gateway.auth.token'] as const;

/** True when setting `path` to `value` would change a protected path. */
export function touchesProtected(path: string, value: unknown): boolean {
  return PROTECTED_PATHS.some((guarded) => {
    if (path === guarded || path.startsWith(`${guarded}.`)) return true;
    if (!guarded.startsWith(`${path}.`)) return false;
    // An object around a protected path is allowed if it does not set that path.
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

/** A copy with `value` at a dotted path; missing objects on the path are created. */
export function withValue(document: GatewayDocument, path: string, value: unknown): GatewayDocument {
  const [head = '', ...rest] = path.split('.');
  if (rest.length === 0) return { ...document, [head]: value };
  const inner = Object.hasOwn(document, head) ? document[head] : undefined;
  return { ...document, [head]: withValue(isObject(inner) ? inner : {}, rest.join('.'), value) };
}

const WRITTEN_KEYS = ['model', 'identity', 'sandbox', 'tools', 'subagents', 'memorySearch'] as const;

/** Whether an entry is the agent's: by its name, or by its id if it has no name. */
function isEntryOf(entry: unknown, name: string): boolean {
  if (!isObject(entry)) return false;
  const said = nameOf(entry);
  return said === undefined ? entry.id === name || entry.id === slug(name) : said === name;
}

/** A slug of `name` that no entry uses as its id. */
function freeId(entries: readonly Entry[], name: string): string {
  const taken = new Set(entries.map((entry) => entry.id));
  const wanted = slug(name);
  let id = wanted;
  for (let number = 2; taken.has(id); number++) id = `${wanted}-${number}`;
  return id;
}

/**
 * A copy in which the agent's entry is changed by `edit`, which gets undefined for a new entry and returns undefined to
 * remove it.
 */
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

/** A copy in which the agent's entry has the gateway's part of its config. `before`: its current name. */
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

/** A copy in which the agent's entry is replaced or removed. */
export const withEntry = (document: GatewayDocument, name: string, entry: GatewayDocument | undefined) =>
  editEntry(document, name, () => entry);

/** A copy without the agent's entry; the same object if there is none. */
export function withoutAgent(document: GatewayDocument, name: string): GatewayDocument {
  if (!entriesOf(document).some((entry) => isEntryOf(entry, name))) return document;
  return editEntry(document, name, () => undefined);
}
