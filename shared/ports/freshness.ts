/**
 * Tells whether something read earlier is still current, without reading it again.
 *
 * With a single process, the response is in memory; when several processes share a database, it takes one small query,
 * shared by all requests that wait for it at the same time.
 */
import type { Position } from './event-log.ts';
import type { ReadAt } from './read-models.ts';

export interface Stamp {
  /** Changes whenever rows of the read models change. */
  readonly value: string;
  /** The position that the rows show; they may show later ones. */
  readonly position: Position;
}

export interface Freshness {
  /**
   * The state of these read models, once they show `at`. Get it before reading: what was read is current for as long as
   * the value stays the same. `workspace` narrows it down where the store supports that.
   *
   * @throws AppError 503 `READ_MODEL_BEHIND`
   */
  stamp(projections: readonly string[], workspace: number | 'all', at: ReadAt): Promise<Stamp>;
  /** The same, synchronously; undefined when there is something to wait for. */
  stampNow(projections: readonly string[], workspace: number | 'all', at: ReadAt): Stamp | undefined;
  /** The state of these read models as it was after `since` (`performance.now()`), whatever they show by then. */
  recent(projections: readonly string[], workspace: number | 'all', since: number): string | Promise<string>;
  /**
   * A value that changes whenever a credential (session, key, password) is added or removed, or rows of these read models
   * change, which show everything acknowledged before `since` (`performance.now()`) that changes what one stands for.
   *
   * @throws AppError 503 `READ_MODEL_BEHIND`
   */
  credentials(projections: readonly string[], since: number): Promise<string>;
  /** The same, synchronously; undefined when there is something to wait for. */
  credentialsNow(projections: readonly string[], since: number): string | undefined;
}
