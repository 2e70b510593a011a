/** Recurring tasks as the read models have them, for their schedule. */

/** A recurring task. Times in Unix seconds. */
export interface RecurringTask {
  readonly tenant: number;
  readonly workspace: number;
  readonly id: number;
  readonly cron: string;
  /** When it got this schedule. */
  readonly cronSince: number;
  /** The minute for which a task was made last. */
  readonly recurredAt: number | null;
  /** The task that was to be made last; null when there is one. */
  readonly missingChild: number | null;
}

export interface RecurrenceReads {
  /** Recurring tasks of all workspaces behind `after`, by workspace and id; at most `limit`. */
  recurring(
    after: { readonly workspace: number; readonly id: number },
    limit: number,
  ): Promise<readonly RecurringTask[]>;
  /** Whether a task of the project has exactly this title. */
  titleTaken(workspace: number, project: number, title: string): Promise<boolean>;
}
