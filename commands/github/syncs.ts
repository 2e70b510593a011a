/** The state kept between syncs with GitHub, and when a sync is worth an event. */
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { githubSynced } from '../../shared/events/github/syncs.ts';
import { defineDecider, on } from '../decider.ts';

export interface SyncState {
  readonly syncs: number;
  /** ISO 8601: issues that last changed before this time need not be read again. */
  readonly cursor: string | null;
  /** Page of the cursor. */
  readonly page: number;
  /** Error of the last sync; null if it succeeded. */
  readonly error: string | null;
  /** The repository of the cursor, in lower case. */
  readonly repo: string;
}

export const syncDecider = defineDecider<SyncState>({
  kind: 'sync',
  // Projects are synced for years, so their streams need snapshots.
  snapshotVersion: 2,
  initial: { syncs: 0, cursor: null, page: 1, error: null, repo: '' },
  folds: [
    on(githubSynced, ({ syncs, cursor, page, repo }, { data }) => ({
      syncs: syncs + 1,
      cursor: data.cursor ?? (data.repo.toLowerCase() === repo ? cursor : null),
      page: data.cursor !== null ? data.page : data.repo.toLowerCase() === repo ? page : 1,
      error: data.error,
      repo: data.repo.toLowerCase(),
    })),
  ],
});

export const projectSource = (project: number): string => `project-${project}`;
export const repositorySource = (repo: string): string => repo.toLowerCase();
export const syncStream = (workspace: number, source: string): string =>
  `github_sync-${workspace}-${encodeURIComponent(source)}`;

/** The cursor to continue from; null: from the beginning, for example because the repository has changed. */
export const cursorFor = (state: SyncState, repo: string): string | null =>
  state.repo === repo.toLowerCase() ? state.cursor : null;

/** The page of that cursor to continue with. */
export const pageFor = (state: SyncState, repo: string): number => (cursorFor(state, repo) === null ? 1 : state.page);

export type Synced = Omit<EventOf<typeof githubSynced>['data'], 'earlier' | 'status' | 'sync_id'>;

/** @param quiet a scheduled sync: no event if the result is the same as before */
export function decideSynced(state: SyncState, syncId: number, synced: Synced, quiet: boolean): EventDraft[] {
  const { imported, updated, pushed, error, errors, cursor, page } = synced;
  const moved = cursor !== null && (cursor !== cursorFor(state, synced.repo) || page !== pageFor(state, synced.repo));
  if (quiet && imported + updated + pushed === 0 && !moved && error === state.error) return [];
  const done = error === null && errors === 0;
  const status = done ? 'success' : imported + updated + pushed > 0 ? 'partial' : 'error';
  return [githubSynced.draft({ ...synced, sync_id: syncId, earlier: state.syncs, status })];
}
