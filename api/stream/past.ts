/**
 * How far back a client may resume: admins to the beginning of the log, others as far as `retention.stream_days`
 * allows, and an agent's key not before it was issued. The limit exists because the stream also repeats what has been
 * deleted since.
 */
import { settingValues } from '../../queries/admin/settings.ts';
import { keyIssued } from '../../queries/agents/keys.ts';
import { positionBefore } from '../../queries/monitoring/activities.ts';
import { nameSinceOf } from '../../queries/monitoring/notifications.ts';
import type { Reads } from '../../queries/reads.ts';
import type { Identity } from '../../shared/identity.ts';
import { BEGINNING, type Position } from '../../shared/ports/event-log.ts';
import { DAY, seconds } from '../../shared/time.ts';
import type { ApiSettings } from '../settings.ts';

export interface Past {
  /** Events up to this position are not sent. */
  readonly after: Position;
  /** Events before this time are not sent, Unix ms. */
  readonly notBefore: number;
  /** The limit as reported to the client, Unix ms. */
  readonly from: number;
  /** Notifications up to this position are not sent: they are for an earlier owner of the name. */
  readonly ownAfter: Position;
}

const SETTING = 'retention.stream_days';

/** Undefined: to the beginning of the log. */
export async function pastOf(
  {
    reads,
    settings,
    now,
  }: {
    readonly reads: Reads;
    readonly settings: ApiSettings;
    readonly now: () => number;
  },
  { role, kind, id, workspace, agentName, username }: Identity,
): Promise<Past | undefined> {
  if (role === 'admin') return undefined;
  const days = Number((await settingValues(reads, settings, [SETTING]))[SETTING]);
  const notBefore = days === 0 ? 0 : now() - days * DAY * 1_000;
  const key = kind === 'agent-key' ? await keyIssued(reads, -id) : undefined;
  // Start after the events that are too old, so that they need not be read.
  const old = days === 0 ? BEGINNING : await positionBefore(reads, workspace, seconds(notBefore));
  return {
    after: Math.max(key?.position ?? BEGINNING, old),
    notBefore,
    from: Math.max(notBefore, (key?.at ?? 0) * 1_000),
    ownAfter: await nameSinceOf(reads, workspace, agentName ?? username),
  };
}
