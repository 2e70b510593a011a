/**
 * Notifications of a PostgreSQL server: one connection per process for all channels.
 *
 * Notifications only shorten waits: every listener also polls. So no caller waits for this connection, and a server
 * that does not respond delays nothing.
 */
import type pg from 'pg';
import { createBackOff, createOutage, pause, takingTurns } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';
import { endInTime, inTime } from './session.ts';

export interface Hearing {
  heard(payload: string): void;
}

export interface Listener {
  /** @returns a function that stops listening */
  listen(channel: string, hearing: Hearing): () => void;
  close(): Promise<void>;
}

const BACK_OFF = { firstMs: 250, lastMs: 5_000 };

/** @param connect opens a dedicated connection, within a time limit */
export function createListener(connect: (name: string) => Promise<pg.Client>, log: Logger): Listener {
  const closing = new AbortController();
  const hearings = new Map<string, Set<Hearing>>();
  const outage = createOutage(
    log,
    'the database sends no notifications; polling instead',
    'the database sends notifications again',
  );
  let running: Promise<void> | undefined;
  /** Listens to one more channel on the current connection. */
  let add = (_channel: string): void => {};

  /** Listens on one connection until it ends. */
  async function session(): Promise<void> {
    const client = await connect('listener');
    const inTurn = takingTurns();
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    client.on('error', (error) => log.debug({ err: error }, 'the connection for notifications broke'));
    client.on('notification', ({ channel, payload }) => {
      for (const hearing of hearings.get(channel) ?? []) hearing.heard(payload ?? '');
    });
    const end = () => {
      endInTime(client).catch(() => undefined);
    };
    const listen = (channel: string) => inTurn(() => client.query(inTime(`LISTEN ${channel}`)));
    add = (channel) => {
      listen(channel).catch(end);
    };
    closing.signal.addEventListener('abort', end, { once: true });
    try {
      await Promise.all(Array.from(hearings.keys(), listen));
      outage.worked();
      await ended;
    } finally {
      add = () => {};
      closing.signal.removeEventListener('abort', end);
      end();
    }
  }

  async function run(): Promise<void> {
    const backOff = createBackOff(BACK_OFF);
    while (!closing.signal.aborted) {
      try {
        await session();
        backOff.reset();
      } catch (error) {
        if (!closing.signal.aborted) outage.failed(error);
      }
      await pause(backOff.next(), closing.signal);
    }
  }

  return {
    listen(channel, hearing) {
      const known = hearings.get(channel);
      if (known) known.add(hearing);
      else {
        hearings.set(channel, new Set([hearing]));
        add(channel);
      }
      running ??= run();
      return () => hearings.get(channel)?.delete(hearing);
    },
    async close() {
      closing.abort();
      await running;
    },
  };
}
