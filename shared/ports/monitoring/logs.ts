/**
 * Lines of the service's own log, and lines that clients add. They are not events: they describe the health of the
 * service, not what happened in it; they are written even when the event log cannot be; and they are removed after a
 * while, which events never are. So they are stored in a table of their own, bounded in age, number and size. The lines
 * of the service belong to the default workspace, the one of the deployment; those of a client to the client's.
 */

export const LINE_LEVELS = ['info', 'warn', 'error', 'debug'] as const;
export type LineLevel = (typeof LINE_LEVELS)[number];

export interface NewLogEntry {
  /** Unix ms. */
  readonly at: number;
  readonly level: LineLevel;
  readonly source: string;
  readonly session: string | null;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>> | null;
}

export interface LogEntry extends NewLogEntry {
  readonly id: string;
}

export interface LogEntryFilter {
  readonly limit: number;
  readonly level?: LineLevel | undefined;
  /** Part of the session. */
  readonly session?: string | undefined;
  /** Part of message or source, ignoring case. */
  readonly search?: string | undefined;
  readonly source?: string | undefined;
}

export interface LogEntries {
  /** Adds a line of a client. Resolves when it is stored. */
  add(workspace: number, entry: NewLogEntry): Promise<LogEntry>;
  /** Newest first. */
  recent(workspace: number, filter: LogEntryFilter): Promise<LogEntry[]>;
  sources(workspace: number): Promise<string[]>;
  /** The newest lines of each source, after `since`, Unix ms; newest first. */
  tail(
    workspace: number,
    filter: { readonly since: number; readonly source?: string | undefined; readonly limit: number },
  ): Promise<LogEntry[]>;
}
