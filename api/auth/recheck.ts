/**
 * Looks up the credentials of open streams again: any number with a few queries, and without the side effects of
 * `identify.ts` (noting uses, creating users).
 */

import { findLiveKeys } from '../../queries/agents/keys.ts';
import { findGlobalKey } from '../../queries/auth/global-key.ts';
import { findUsers, findUsersByName, type UserRow } from '../../queries/auth/users.ts';
import type { Reads } from '../../queries/reads.ts';
import type { Credentials, KeyRecord } from '../../shared/ports/credentials.ts';
import type { Freshness } from '../../shared/ports/read-models.ts';
import { type HeldCredential, type Known, knownAgentKey, knownGlobalKey, knownSession, knownUser } from './known.ts';

/** Read models that decide what a credential stands for (`CREDENTIAL_PROJECTIONS` in `infra/core.ts`). */
const MODELS = ['users', 'agent_keys'];

/**
 * A value that changes whenever a credential, user or key may have changed in any process. Take it before a lookup: the
 * result is then valid for as long as the value stays the same, apart from expiry.
 *
 * @param since `performance.now()`: a value from any time after this is acceptable; default: now
 */
export const credentialStamp = (freshness: Freshness, since = performance.now()): Promise<string> =>
  freshness.credentials(MODELS, since);

export interface CredentialCheck {
  /** See `credentialStamp`. */
  stamp(): Promise<string>;
  /** The current identity of each credential, in order; undefined if it is no longer valid. Does not check expiry. */
  lookUp(held: readonly HeldCredential[]): Promise<readonly (Known | undefined)[]>;
}

export function createCredentialCheck(parts: {
  readonly reads: Reads;
  readonly credentials: Credentials;
  readonly freshness: Freshness;
}): CredentialCheck {
  const { credentials, freshness } = parts;
  // The caller took a stamp before this lookup, and so has already waited for the read models of the credentials.
  const reads = parts.reads.at({});

  async function sessions(hashes: readonly string[]): Promise<ReadonlyMap<string, Known | undefined>> {
    if (hashes.length === 0) return new Map();
    const found = await credentials.findSessions(hashes);
    const users = await usersOf([...found.values()].map((session) => session.userId));
    return new Map(
      hashes.map((hash) => {
        const session = found.get(hash);
        return [hash, knownSession(hash, session, session && users.get(session.userId))];
      }),
    );
  }

  async function usersOf(ids: readonly number[]): Promise<ReadonlyMap<number, UserRow>> {
    return new Map((await findUsers(reads, [...new Set(ids)])).map((user) => [user.id, user]));
  }

  async function keys(hashes: readonly string[]): Promise<ReadonlyMap<string, Known | undefined>> {
    if (hashes.length === 0) return new Map();
    const records = await credentials.findKeys(hashes);
    const ids = [...records.values()].filter(({ kind }) => kind === 'agent').map(({ keyId }) => keyId);
    const [rows, inForce] = await Promise.all([findLiveKeys(reads, ids), findGlobalKey(reads)]);
    const rowOf = new Map(rows.map((row) => [row.id, row]));
    const known = (record: KeyRecord) =>
      record.kind === 'global' ? knownGlobalKey(record, inForce) : knownAgentKey(record, rowOf.get(record.keyId));
    return new Map([...records].map(([hash, record]) => [hash, known(record)]));
  }

  async function proxied(names: readonly string[]): Promise<ReadonlyMap<string, Known | undefined>> {
    if (names.length === 0) return new Map();
    return new Map((await findUsersByName(reads, names)).map((user) => [user.username, knownUser(user)]));
  }

  return {
    stamp: () => credentialStamp(freshness),
    async lookUp(held) {
      const hashes = (kind: 'session' | 'key') => [
        ...new Set(held.flatMap((one) => (one.kind === kind ? [one.hash] : []))),
      ];
      const names = [...new Set(held.flatMap((one) => ('username' in one ? [one.username] : [])))];
      const [bySession, byKey, byName] = await Promise.all([
        sessions(hashes('session')),
        keys(hashes('key')),
        proxied(names),
      ]);
      return held.map((one) => {
        if (one.kind === 'proxy') return byName.get(one.username);
        if (one.kind === 'token') {
          const known = byName.get(one.username);
          return known && { ...known, expiresAt: one.expiresAt };
        }
        return (one.kind === 'session' ? bySession : byKey).get(one.hash);
      });
    },
  };
}
