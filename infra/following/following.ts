/**
 * Everything in a process that follows the log shares one reader, one connection for locks, and one writer of idle
 * checkpoints.
 */
import type { EventLog } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../logging.ts';
import { Follower, type FollowerStatus, type Subject } from './follower.ts';
import { IdleCheckpoints } from './idle.ts';
import { createLeadership, type Leadership } from './leadership.ts';
import { LogReader } from './reader.ts';

/** A running follower, until it is closed. */
export interface Followed {
  readonly status: FollowerStatus;
  /** Restarts the follower at its stored checkpoint. */
  restart(reason: Error): void;
  close(): Promise<void>;
}

export interface FollowOptions {
  readonly log: Logger;
  /** `one process`: a single process follows for this subject and stores its checkpoint. */
  readonly by: 'one process' | 'each process';
}

export class Following {
  readonly reader: LogReader;
  readonly #leadership: Leadership;
  readonly #idle: IdleCheckpoints;

  constructor({ database, eventLog, log }: { database: Database; eventLog: EventLog; log: Logger }) {
    this.reader = new LogReader(eventLog, log);
    this.#leadership = createLeadership(database, log);
    this.#idle = new IdleCheckpoints(database, this.reader);
  }

  /** Starts following, or waiting for leadership. Returns at once. */
  follow(subject: Subject, { log, by }: FollowOptions): Followed {
    const closing = new AbortController();
    const { signal } = closing;
    const led = by === 'one process';
    const follower = new Follower(subject, { reader: this.reader, idle: led ? this.#idle : undefined, log });
    const running = led
      ? this.#leadership.lead(subject.name, signal, (held) => follower.run(held))
      : follower.run(signal);
    return {
      status: follower,
      restart: (reason) => follower.failed(reason),
      async close() {
        closing.abort();
        await running;
      },
    };
  }

  /** Call this when all followers have been closed. */
  async close(): Promise<void> {
    await this.#idle.close();
    await this.#leadership.close();
    await this.reader.close();
  }
}
