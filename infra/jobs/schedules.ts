/** Work by the clock: the liveness sweep and house-keeping. Repeatable jobs: of all processes one does each turn. */
import { z } from 'zod';
import { sweepLiveness } from '../../commands/policies/agents/liveness.ts';
import { silentAgents } from '../../queries/agents/liveness.ts';
import { defineJob, handleJob, type JobHandler, type JobKind } from '../../shared/ports/jobs.ts';
import { HOUR, MINUTE, seconds } from '../../shared/time.ts';
import type { Core } from '../core.ts';
import { purgeIdempotency } from '../database/idempotency.ts';

export interface Schedule {
  readonly kind: JobKind;
  readonly everyMs: number;
  readonly handler: JobHandler;
}

/** A turn is given up before the next one is due, so that they never overlap; milliseconds. */
const TURN_MS = 4 * MINUTE * 1_000;
const SWEEP_MS = 5 * MINUTE * 1_000;

function schedule(name: string, everyMs: number, run: () => Promise<void>): Schedule {
  const kind = defineJob({ name, schema: z.object({}), timeoutMs: TURN_MS });
  return { kind, everyMs, handler: handleJob(kind, run) };
}

/** @param now Unix ms */
export function schedulesOf(
  { commands, reads, config, database }: Pick<Core, 'commands' | 'reads' | 'config' | 'database'>,
  now: () => number = Date.now,
): readonly Schedule[] {
  const startedAt = now();
  return [
    schedule('liveness-sweep', SWEEP_MS, async () => {
      // A turn that was due while the service was down comes at once, before any agent could give a sign of life.
      if (config.agentTimeoutMinutes === 0 || now() - startedAt < SWEEP_MS) return;
      await sweepLiveness({
        commands,
        silentAgents: (since) => silentAgents(reads, since),
        timeoutMinutes: config.agentTimeoutMinutes,
        now,
      });
    }),
    schedule('purge-idempotency-keys', 10 * MINUTE * 1_000, async () => {
      await purgeIdempotency(database.pool);
    }),
    schedule('purge-sessions', HOUR * 1_000, async () => {
      // Nobody accepts them any more, so nobody has to be told.
      await database.pool.query('DELETE FROM credentials.sessions WHERE expires_at <= $1', [seconds(now())]);
    }),
  ];
}
