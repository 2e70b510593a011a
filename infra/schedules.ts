/**
 * Work by the clock: the liveness sweep and house-keeping. Of several processes one does each run; runs never overlap.
 */
import { sweepLiveness } from '../commands/policies/liveness.ts';
import { MINUTE } from '../shared/time.ts';
import type { Core } from './core.ts';
import { purgeIdempotency } from './idempotency.ts';
import { LOCK_CLASS } from './projector/projector.ts';

interface Schedule {
  readonly name: string;
  readonly everyMs: number;
  run(core: Core): Promise<void>;
}

const SCHEDULES: readonly Schedule[] = [
  {
    name: 'liveness sweep',
    everyMs: 5 * MINUTE * 1_000,
    async run({ commands, reads, config }) {
      if (config.agentTimeoutMinutes > 0)
        await sweepLiveness({ commands, reads, timeoutMinutes: config.agentTimeoutMinutes, now: Date.now });
    },
  },
  {
    name: 'forget old idempotency keys',
    everyMs: 10 * MINUTE * 1_000,
    async run({ database }) {
      await purgeIdempotency(database.pool, Date.now());
    },
  },
];

/** Starts the schedules. Gives the function that stops them and waits for a run in flight. */
export function startSchedules(core: Core): () => Promise<void> {
  const running = new Map<string, Promise<void>>();
  const timers = SCHEDULES.map((schedule) => {
    const timer = setInterval(() => {
      if (running.has(schedule.name)) return;
      const run = asTheOnlyOne(core, schedule)
        .catch((error) =>
          core.log.error({ err: error, schedule: schedule.name }, 'scheduled work failed; the next turn tries again'),
        )
        .finally(() => running.delete(schedule.name));
      running.set(schedule.name, run);
    }, schedule.everyMs);
    timer.unref();
    return timer;
  });
  return async () => {
    for (const timer of timers) clearInterval(timer);
    await Promise.all(running.values());
  };
}

async function asTheOnlyOne(core: Core, schedule: Schedule): Promise<void> {
  if (core.database.kind === 'embedded') return schedule.run(core);
  const client = await core.database.pool.connect();
  try {
    const key = [LOCK_CLASS, schedule.name];
    const { rows } = await client.query('SELECT pg_try_advisory_lock($1, hashtext($2)) AS mine', key);
    if (!rows[0]?.mine) return;
    try {
      await schedule.run(core);
    } finally {
      await client.query('SELECT pg_advisory_unlock($1, hashtext($2))', key);
    }
  } finally {
    client.release();
  }
}
