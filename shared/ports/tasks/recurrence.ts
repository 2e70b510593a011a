/** Recurring tasks from the read models, for their schedule. */
import type { RecordPlace } from '../read-models.ts';

/** A recurring task. Times in Unix seconds. */
export interface RecurringTask extends RecordPlace {
  readonly cron: string;
  /** Since when it has this schedule. */
  readonly cronSince: number;
  /** The last minute for which a task was created. */
  readonly recurredAt: number | null;
  /** The last task if it is still to be created; null if it exists. */
  readonly missingChild: number | null;
}

export interface RecurrenceReads {
  /** Recurring tasks of all workspaces after `after`, by workspace and id; at most `limit`. */
  recurring(
    after: { readonly workspace: number; readonly id: number },
    limit: number,
  ): Promise<readonly RecurringTask[]>;
  /** Whether a task of the project has exactly this title. */
  titleTaken(workspace: number, project: number, title: string): Promise<boolean>;
}
