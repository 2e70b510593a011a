/** The port of what an erasure changes outside the log and the read models: keys, and copies of texts. */
import type { LoggedEvent } from '../event-log.ts';

export interface PersonRecords {
  /**
   * Deletes a person's key, and personal data outside the log and the read models: responses for repeated requests, and
   * display names in stored webhook payloads. May be repeated.
   *
   * @param person `user:7`
   * @param stream of the events with the person's names
   * @param username replaces the display name from now on; null: there is none
   * @param workspaces those whose payloads can have the names; in others, the same text is something else
   * @returns the display names, which can no longer be read
   */
  erase(
    person: string,
    stream: string,
    username: string | null,
    workspaces: readonly number[],
  ): Promise<readonly string[]>;
  /** Replaces display names in stored webhook payloads, once more: until now, some could be made from read models. */
  forget(texts: readonly string[], username: string | null, workspaces: readonly number[]): Promise<void>;
  /** The text of a personal field of an event; null: it is not a text, or is no longer readable. */
  textOf(event: LoggedEvent, field: string): Promise<string | null>;
  /**
   * Deletes the key of a personal field of an event, and its text outside the log and the read models. May be repeated.
   *
   * @param text of the field
   */
  redact(event: LoggedEvent, field: string, text: string | null): Promise<void>;
}
