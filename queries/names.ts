/** Display names of users. */
import { sql } from 'kysely';
import { agentsProjection } from '../projections/agents/agents.ts';
import { usersProjection } from '../projections/auth/users.ts';
import type { ShownAs } from '../shared/events/monitoring/frames.ts';
import { displayKeys, displayNameFault } from '../shared/names.ts';
import type { Freshness, ReadAt } from '../shared/ports/read-models.ts';
import { createKept, createLookUps } from './kept.ts';
import { inWorkspace, type Reads, tableOf } from './reads.ts';

/** Ids of the users of a workspace whose display names have a key (`displayKeys`). Reads without waiting. */
export function displayedUsers(
  reads: Reads,
  freshness: Pick<Freshness, 'stamp'>,
): (workspace: number, key: string) => Promise<readonly number[]> {
  const lookUps = createLookUps<ReadonlyMap<string, readonly number[]>>({
    reads,
    freshness,
    models: PEOPLE_MODELS,
    scope: 'workspace',
    values: KEPT_WORKSPACES,
  });
  // Computing keys takes longer than looking them up.
  const kept = createKept<readonly string[]>({ values: KEPT });
  return async (workspace, key) => {
    const own = kept.of(workspace);
    const keysOf = (name: string): readonly string[] => {
      const keys = own.get(name) ?? displayKeys(name);
      own.set(name, keys);
      return keys;
    };
    const lookUp = await lookUps(workspace, {});
    const byKey = await lookUp('', async (there) => {
      const users = await inWorkspace(there, usersProjection, 'users', workspace)
        .where(sql<boolean>`display_name <> username`)
        .select(['id', 'display_name'])
        .execute();
      const found = new Map<string, number[]>();
      for (const { id, display_name } of users)
        for (const one of keysOf(display_name ?? '')) found.set(one, [...(found.get(one) ?? []), id]);
      return found;
    });
    return byKey.get(key) ?? [];
  };
}

/** Display names. Only events about the user contain them, so they are looked up where a name is shown. */
export interface DisplayNames {
  /**
   * How names in records of a workspace are displayed. A name that is not a user's is shown unchanged, and so is one
   * that a user got after the record was written.
   *
   * @param names names that may be usernames
   */
  of(workspace: number, names: readonly string[]): Promise<ShownAs>;
  /**
   * The username of the only user of a workspace with this display name; the text itself if it is a username, or if
   * several users have it.
   *
   * @param at default: the head of the log at the time of the call
   */
  usernameOf(workspace: number, shown: string, at?: ReadAt): Promise<string>;
}

/** Read models that show users by their display names. */
export const PEOPLE_MODELS: readonly string[] = [usersProjection.name];

interface Shown {
  readonly display: string;
  /** When the user was created, Unix seconds. */
  readonly since: number;
}

/** Maximum number of cached names per process. */
const KEPT = 20_000;
/** Maximum number of workspaces whose display names are cached per process. */
const KEPT_WORKSPACES = 1_000;
/** A response of the store is reused for this long, milliseconds. */
const RECENT_MS = 1_000;

/**
 * @param freshness undefined: every name is looked up again
 * @param waits false: names as the read model has them, for responses of writes; usernames if it cannot be read
 */
export function createDisplayNames({
  reads,
  freshness,
  waits = true,
}: {
  readonly reads: Reads;
  readonly freshness?: Pick<Freshness, 'stamp'>;
  readonly waits?: boolean;
}): DisplayNames {
  const shownFrom = waits ? reads : reads.at({});
  /** Null: no user's. */
  const kept = createKept<Shown | { readonly display: null }>({ values: KEPT });
  let stamp: string | undefined;
  const displayed = createLookUps<readonly string[]>({
    reads,
    freshness,
    models: PEOPLE_MODELS,
    values: KEPT,
    scope: 'all',
  });

  async function refresh(): Promise<void> {
    const at = waits ? { since: performance.now() - RECENT_MS } : {};
    const now = await freshness?.stamp(PEOPLE_MODELS, 'all', at);
    if (now !== undefined && now.value === stamp) return;
    kept.clear();
    stamp = now?.value;
  }

  const lookedUp: DisplayNames['of'] = async (workspace, names) => {
    await refresh();
    const own = kept.of(workspace);
    const found = new Map<string, Shown | undefined>();
    const missing: string[] = [];
    for (const name of new Set(names)) {
      const known = own.get(name);
      if (!known) missing.push(name);
      else if (known.display !== null) found.set(name, known);
    }
    if (missing.length > 0) {
      const before = stamp;
      const rows = await inWorkspace(shownFrom, usersProjection, 'users', workspace)
        .where(sql<boolean>`username = ANY(${missing})`)
        .select(['username', 'display_name', 'created_at'])
        .execute();
      for (const { username, display_name, created_at } of rows)
        found.set(username, { display: display_name ?? username, since: created_at });
      if (before === stamp && freshness)
        for (const name of missing) own.set(name, found.get(name) ?? { display: null });
    }
    return (name, at) => {
      const one = found.get(name);
      return one && one.since <= at ? one.display : name;
    };
  };

  return {
    // The write is already stored: its response must not fail because names cannot be looked up.
    of: (...asked) => (waits ? lookedUp(...asked) : lookedUp(...asked).catch(() => (name) => name)),
    async usernameOf(workspace, shown, at) {
      const lookUp = await displayed(workspace, at);
      const found = await lookUp(shown, (then) => displayedAs(then, workspace, shown));
      return found.length === 1 ? recipientOf(at ? reads.at(at) : reads, workspace, shown) : shown;
    },
  };
}

/**
 * The recipient that a text names: the agent or the user of this name; otherwise the only user with this display name,
 * unless the name is reserved; otherwise the text itself.
 */
export async function recipientOf(reads: Reads, workspace: number, text: string): Promise<string> {
  if (displayNameFault(text) !== undefined) return text;
  const [only, another] = await displayedAs(reads, workspace, text);
  if (only === undefined || another !== undefined) return text;
  return (await isName(reads, workspace, text)) ? text : only;
}

/** Up to two usernames of users with this display name. */
const displayedAs = async (reads: Reads, workspace: number, shown: string): Promise<readonly string[]> =>
  (
    await inWorkspace(reads, usersProjection, 'users', workspace)
      .where('display_name', '=', shown)
      .select('username')
      .limit(2)
      .execute()
  ).map(({ username }) => username);

/** Whether a user or an agent has exactly this name. */
async function isName(reads: Reads, workspace: number, name: string): Promise<boolean> {
  const users = tableOf(reads, usersProjection, 'users');
  const agents = tableOf(reads, agentsProjection, 'agents');
  const { rows } = await sql<{ taken: boolean }>`
    SELECT EXISTS (SELECT 1 FROM ${users} WHERE workspace_id = ${workspace} AND username = ${name})
      OR EXISTS (SELECT 1 FROM ${agents} WHERE workspace_id = ${workspace} AND name = ${name}) AS taken`.execute(
    reads.db,
  );
  return rows[0]?.taken === true;
}

/** Records with the display names of users under some of their keys. */
export async function withDisplayNames<T extends { readonly created_at: number }>(
  names: DisplayNames,
  workspace: number,
  records: readonly T[],
  keys: readonly (keyof T & string)[],
): Promise<T[]> {
  const texts = records.flatMap((record) => keys.map((key) => record[key]));
  const shownAs = await names.of(
    workspace,
    texts.filter((text): text is T[(typeof keys)[number]] & string => typeof text === 'string'),
  );
  return records.map((record) => {
    const shown: Partial<Record<string, unknown>> = {};
    for (const key of keys) {
      const text = record[key];
      if (typeof text === 'string') shown[key] = shownAs(text, record.created_at);
    }
    return { ...record, ...shown };
  });
}
