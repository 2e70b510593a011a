/**
 * Incidents: refusals and notable uses, recorded in the background so that no request is slowed down or fails.
 *
 * The first incident of a caller at a route is written at once; the ones that follow within the window are counted, and
 * the count is written when the window ends. Memory and events in flight are bounded: a flood costs counts, not the
 * service.
 */
import type { CommandContext } from '../../commands/handler.ts';
import {
  accessDenied,
  apiKeyRefused,
  globalKeyUsed,
  proxyAuthMisconfigured,
  rateLimitHit,
  tenantAccessDenied,
} from '../../shared/events/auth/incidents.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import type { Identity, Role } from '../../shared/identity.ts';
import { type Exchange, originOf } from '../http/exchange.ts';
import { networkOf } from '../http/limits.ts';
import type { Services } from '../services.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const SWEEP_MS = 5_000;
const MAX_WINDOWS = 5_000;
const MAX_IN_FLIGHT = 100;

type Parts = Pick<Services, 'commands' | 'log' | 'now'>;

interface Window {
  readonly endsAt: number;
  readonly length: number;
  /** Incidents since the last event was written. */
  unwritten: number;
  readonly context: Pick<CommandContext, 'origin'>;
  readonly make: (count: number) => EventDraft;
}

interface Recorder {
  note(key: string, length: number, begin: () => Pick<Window, 'context' | 'make'>): void;
  drain(): Promise<void>;
}

function createRecorder({ commands, log, now }: Parts): Recorder {
  const windows = new Map<string, Window>();
  const inFlight = new Set<Promise<void>>();
  let sweeper: NodeJS.Timeout | undefined;
  let lost = 0;

  function write({ context, make }: Pick<Window, 'context' | 'make'>, count: number): void {
    if (inFlight.size >= MAX_IN_FLIGHT) {
      lost += count;
      return;
    }
    const month = new Date(now()).toISOString().slice(0, 7);
    const one = commands
      .record(`incidents-${month}`, { origin: context.origin }, [make(count)])
      .then(
        () => undefined,
        (error) => log.warn({ err: error }, 'could not record an incident'),
      )
      .finally(() => inFlight.delete(one));
    inFlight.add(one);
  }

  /** Ends windows. Those with a count start again, so that a steady stream of incidents gives one event per window. */
  function sweep(everything: boolean): void {
    sweeper = undefined;
    const at = now();
    for (const [key, window] of windows) {
      if (!everything && window.endsAt > at) continue;
      windows.delete(key);
      if (window.unwritten === 0) continue;
      write(window, window.unwritten);
      if (!everything) windows.set(key, { ...window, unwritten: 0, endsAt: at + window.length });
    }
    if (lost > 0) {
      log.warn({ lost }, 'too many incidents at once; some were not recorded');
      lost = 0;
    }
    if (windows.size > 0) schedule();
  }

  function schedule(): void {
    sweeper ??= setTimeout(() => sweep(false), SWEEP_MS).unref();
  }

  return {
    note(key, length, begin) {
      const known = windows.get(key);
      if (known) {
        known.unwritten++;
        return;
      }
      if (windows.size >= MAX_WINDOWS) {
        lost++;
        schedule();
        return;
      }
      const begun = begin();
      windows.set(key, { ...begun, length, endsAt: now() + length, unwritten: 0 });
      write(begun, 1);
      schedule();
    },
    async drain() {
      clearTimeout(sweeper);
      sweep(true);
      while (inFlight.size > 0) await Promise.all(inFlight);
    },
  };
}

const recorders = new WeakMap<Parts['commands'], Recorder>();

function recorderOf(services: Parts): Recorder {
  let recorder = recorders.get(services.commands);
  if (!recorder) {
    recorder = createRecorder(services);
    recorders.set(services.commands, recorder);
  }
  return recorder;
}

/** Identifies a caller: by identity when known, else by network address. */
const callerOf = ({ identity, ip }: Exchange): string => (identity ? `${identity.kind}:${identity.id}` : networkOf(ip));

function note(
  services: Parts,
  exchange: Exchange,
  key: string,
  length: number,
  make: (count: number) => EventDraft,
): void {
  recorderOf(services).note(key, length, () => ({ context: { origin: originOf(exchange) }, make }));
}

const at = ({ req, route }: Exchange): string => `${req.method} ${route}`;

/** A known caller lacks the role for `route`. */
export function recordDenial(services: Parts, exchange: Exchange, route: string, needed: Role): void {
  note(services, exchange, `denied ${callerOf(exchange)} ${route}`, MINUTE_MS, (count) =>
    accessDenied.draft({ route, needed, count }),
  );
}

/** A caller from outside the default tenant asked for `route`, which concerns the whole deployment. */
export function recordTenantDenial(services: Parts, exchange: Exchange, route: string): void {
  note(services, exchange, `foreign ${callerOf(exchange)} ${route}`, MINUTE_MS, (count) =>
    tenantAccessDenied.draft({ route, count }),
  );
}

/** A caller exceeded the rate limit of `limitClass`. */
export function recordLimit(services: Parts, limitClass: string, exchange: Exchange): void {
  const route = at(exchange);
  note(services, exchange, `limited ${callerOf(exchange)} ${limitClass} ${route}`, MINUTE_MS, (count) =>
    rateLimitHit.draft({ route, limit: limitClass, count }),
  );
}

/** A caller sent an invalid API key. */
export function recordWrongKey(services: Parts, exchange: Exchange): void {
  const route = at(exchange);
  note(services, { ...exchange, identity: null }, `wrong key ${networkOf(exchange.ip)}`, MINUTE_MS, (count) =>
    apiKeyRefused.draft({ route, count }),
  );
}

/** A request was authenticated with the global key; `identity` is the resulting caller. */
export function recordGlobalKeyUse(services: Parts, exchange: Exchange, identity: Identity): void {
  recorderOf(services).note(`key ${networkOf(exchange.ip)}`, HOUR_MS, () => {
    const route = at(exchange);
    return {
      context: { origin: originOf({ ...exchange, identity }) },
      make: (count) => globalKeyUsed.draft({ route, count }),
    };
  });
}

/** The proxy header was sent, but no address is trusted to send it. */
export function recordProxyMisconfigured(services: Parts, exchange: Exchange, header: string): void {
  // One window for all callers: the fault is in the deployment's configuration.
  note(services, exchange, 'proxy', HOUR_MS, (count) => proxyAuthMisconfigured.draft({ header, count }));
}

/** Writes the pending counts and waits for them: for shutdown and tests. Never throws. */
export async function drainIncidents(services: Parts): Promise<void> {
  await recorders.get(services.commands)?.drain();
}
