/**
 * Security events: refusals and notable uses, recorded in the background so that no request is slowed down or fails.
 *
 * The first event of a caller at a route is written at once; further ones within the window are counted, and the count
 * is written when the window ends. Memory and events in flight are bounded: a flood may lose counts, but does not harm
 * the service.
 */
import type { Logger } from 'pino';
import type { CommandContext, Commands } from '../../commands/handler.ts';
import {
  accessDenied,
  agentAccessDenied,
  apiKeyRefused,
  globalKeyUsed,
  incidentsStream,
  injectionRefused,
  proxyAuthMisconfigured,
  rateLimitHit,
  tenantAccessDenied,
  workspaceIsolationDenied,
} from '../../shared/events/auth/incidents.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import type { Identity, Role } from '../../shared/identity.ts';
import { type Exchange, originOf } from '../http/exchange.ts';
import { networkOf } from '../http/limits.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const SWEEP_MS = 5_000;
const MAX_WINDOWS = 5_000;
const MAX_IN_FLIGHT = 100;

interface Parts {
  readonly commands: Commands;
  readonly log: Logger;
  /** Unix ms. */
  readonly now: () => number;
}

/** One method for each kind of incident. They return at once and never throw. */
export interface Incidents {
  /** A known caller lacks the role for `route`. */
  accessDenied(exchange: Exchange, route: string, needed: Role): void;
  /** A caller with an agent's key called `route`, which is closed to agents or concerns another agent. */
  agentAccessDenied(exchange: Exchange, route: string): void;
  /** A caller from outside the default tenant called `route`, which concerns the whole deployment. */
  tenantAccessDenied(exchange: Exchange, route: string): void;
  /** A caller of a strict workspace called `route`, which concerns a `resource` that workspaces share. */
  isolationDenied(exchange: Exchange, route: string, resource: string): void;
  /** A caller exceeded a rate limit. */
  rateLimitHit(exchange: Exchange, limit: string): void;
  /** A text from a caller was refused as an attempt to take over an agent: it broke these `rules`. */
  injectionRefused(exchange: Exchange, rules: readonly string[]): void;
  /** A caller sent an invalid API key. */
  apiKeyRefused(exchange: Exchange): void;
  /** A request was authenticated with the global key; `identity` is the resulting caller. */
  globalKeyUsed(exchange: Exchange, identity: Identity): void;
  /** The proxy header was sent, but no address is trusted to send it. */
  proxyMisconfigured(exchange: Exchange, header: string): void;
  /** Writes the pending counts and waits for them: for shutdown and tests. */
  drain(): Promise<void>;
}

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
    const one = commands
      .record(incidentsStream(now()), { origin: context.origin }, [make(count)])
      .then(
        () => undefined,
        (error) => log.warn({ err: error }, 'could not record an incident'),
      )
      .finally(() => inFlight.delete(one));
    inFlight.add(one);
  }

  /** Ends windows. A window with a count starts again, so a steady stream of incidents gives one event per window. */
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

/** Identifies a caller: by identity when known, else by network address. */
const callerOf = ({ identity, ip }: Exchange): string => (identity ? `${identity.kind}:${identity.id}` : networkOf(ip));

const at = ({ req, route }: Exchange): string => `${req.method} ${route}`;

export function createIncidents(parts: Parts): Incidents {
  const recorder = createRecorder(parts);

  function note(exchange: Exchange, key: string, length: number, make: (count: number) => EventDraft): void {
    recorder.note(key, length, () => ({ context: { origin: originOf(exchange) }, make }));
  }

  return {
    accessDenied(exchange, route, needed) {
      note(exchange, `denied ${callerOf(exchange)} ${route}`, MINUTE_MS, (count) =>
        accessDenied.draft({ route, needed, count }),
      );
    },
    agentAccessDenied(exchange, route) {
      note(exchange, `agent ${callerOf(exchange)} ${route}`, MINUTE_MS, (count) =>
        agentAccessDenied.draft({ route, count }),
      );
    },
    tenantAccessDenied(exchange, route) {
      note(exchange, `foreign ${callerOf(exchange)} ${route}`, MINUTE_MS, (count) =>
        tenantAccessDenied.draft({ route, count }),
      );
    },
    isolationDenied(exchange, route, resource) {
      note(exchange, `isolated ${callerOf(exchange)} ${route}`, MINUTE_MS, (count) =>
        workspaceIsolationDenied.draft({ route, resource, count }),
      );
    },
    rateLimitHit(exchange, limit) {
      const route = at(exchange);
      note(exchange, `limited ${callerOf(exchange)} ${limit} ${route}`, MINUTE_MS, (count) =>
        rateLimitHit.draft({ route, limit, count }),
      );
    },
    injectionRefused(exchange, rules) {
      const route = at(exchange);
      note(exchange, `injection ${callerOf(exchange)} ${route} ${rules.join()}`, MINUTE_MS, (count) =>
        injectionRefused.draft({ route, rules: [...rules], count }),
      );
    },
    apiKeyRefused(exchange) {
      const route = at(exchange);
      note({ ...exchange, identity: null }, `wrong key ${networkOf(exchange.ip)}`, MINUTE_MS, (count) =>
        apiKeyRefused.draft({ route, count }),
      );
    },
    globalKeyUsed(exchange, identity) {
      recorder.note(`key ${networkOf(exchange.ip)}`, HOUR_MS, () => {
        const route = at(exchange);
        return {
          context: { origin: originOf({ ...exchange, identity }) },
          make: (count) => globalKeyUsed.draft({ route, count }),
        };
      });
    },
    proxyMisconfigured(exchange, header) {
      // One window for all callers: the fault is in the deployment's configuration.
      note(exchange, 'proxy', HOUR_MS, (count) => proxyAuthMisconfigured.draft({ header, count }));
    },
    drain: () => recorder.drain(),
  };
}
