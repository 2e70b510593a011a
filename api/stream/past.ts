/**
 * How far back a client may resume: admins to the beginning of the log, others as far as `retention.stream_days` says, and
 * an agent's key not before it was issued. The stream repeats what was deleted since, so its past has to end somewhere.
 */
import { settingValues } from '../../queries/admin/settings.ts';
import { keyIssued } from '../../queries/agents/keys.ts';
import { positionBefore } from '../../queries/monitoring/activities.ts';
import type { Reads } from '../../queries/reads.ts';
import type { Identity } from '../../shared/identity.ts';
import { BEGINNING, type Position } from '../../shared/ports/event-log.ts';
import { DAY, seconds } from '../../shared/time.ts';
import type { ApiSettings } from '../settings.ts';

export interface Past {
  /** Nothing up to this position is sent. */
  readonly after: Position;
  /** Nor anything that happened before, Unix ms. */
  readonly notBefore: number;
  /** The limit that the client gets, Unix ms. */
  readonly from: number;
}

const SETTING = 'retention.stream_days';

/** Undefined: to the beginning of the log. */
export async function pastOf(
  { reads, settings, now }: { readonly reads: Reads; readonly settings: ApiSettings; readonly now: () => number },
  { role, kind, id, workspace }: Identity,
): Promise<Past | undefined> {
  if (role === 'admin') return undefined;
  const days = Number((await settingValues(reads, settings, [SETTING]))[SETTING]);
  const notBefore = days === 0 ? 0 : now() - days * DAY * 1_000;
  const key = kind === 'agent-key' ? await keyIssued(reads, -id) : undefined;
  // So that what is too old need not be read.
  const old = days === 0 ? BEGINNING : await positionBefore(reads, workspace, seconds(notBefore));
  return {
    after: Math.max(key?.position ?? BEGINNING, old),
    notBefore,
    from: Math.max(notBefore, (key?.at ?? 0) * 1_000),
  };
}
