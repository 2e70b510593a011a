/**
 * Schedules: work that is done at set times; each is exported by its feature.
 *
 * A schedule says how often it is due, and how to run one turn. `infra/jobs/schedules.ts` runs it in one of the
 * processes, and records the result of the turn.
 */
import type { SettingName } from '../../shared/contract/admin/settings.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { HOUR, MINUTE } from '../../shared/time.ts';

export interface Schedule {
  /** Its name in the API. */
  readonly id: string;
  /** Name of the schedule in the job store. */
  readonly kind: string;
  /** Name of the work, for people. */
  readonly name: string;
  /** Interval between turns, milliseconds. */
  readonly everyMs: number;
  /** Once a day from this hour on, UTC, instead of every `everyMs`. */
  readonly dailyAt?: number;
  /** Whether the settings enable it. Default: always. */
  readonly enabled?: () => Promise<boolean>;
  /**
   * Runs one turn.
   *
   * @returns its result, as a sentence
   * @param asked an operator requested the turn, although it may not be due
   */
  readonly run: (asked: boolean, signal: AbortSignal) => Promise<string>;
}

/** A setting that admins change while the service runs. */
export type Setting = (name: SettingName) => Promise<string>;

export const isOn = (setting: Setting, name: SettingName) => async (): Promise<boolean> =>
  (await setting(name)) === 'true';

export const EVERY_MINUTE_MS = MINUTE * 1_000;
export const EVERY_TEN_MINUTES_MS = 10 * MINUTE * 1_000;
export const EVERY_HOUR_MS = HOUR * 1_000;

/** Runs work for each of these. A failure does not stop the others. @throws the first failure, at the end */
export async function forAll<T>(
  items: Iterable<T> | AsyncIterable<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const failures: unknown[] = [];
  for await (const item of items) await work(item).catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}

/** Place of a record in the order by workspace and id. */
export type Place = Pick<RecordPlace, 'workspace' | 'id'>;
/** Before every record. */
export const FIRST: Place = { workspace: 0, id: 0 };

/** Records by workspace and id, after a place, read in pages of this size. */
export async function* paged<T extends Place>(
  read: (after: Place, limit: number) => Promise<readonly T[]>,
  size: number,
  begin = FIRST,
): AsyncGenerator<T, void, void> {
  let after = begin;
  for (;;) {
    const page = await read(after, size);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < size) return;
    after = { workspace: last.workspace, id: last.id };
  }
}

/** A number with its noun, and the verb that goes with it: `1 task was`, `2 tasks were`. */
export const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
