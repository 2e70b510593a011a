/**
 * Security events: refusals and notable uses, recorded in the background so that no request is slowed down or fails.
 *
 * The first event of a caller at a route is written at once; further ones within the window are counted, and the count
 * is written when the window ends. Memory and events in flight are bounded: a flood may lose counts, but does not harm
 * the service.
 */
import type { Logger } from 'pino';
import type { Breach } from '../../commands/agents/prompts.ts';
import type { CommandContext, Commands } from '../../commands/handler.ts';
import {
  accessDenied,
  agentAccessDenied,
  apiKeyRefused,
  globalKeyUsed,
  injectionRefused,
  proxyAuthMisconfigured,
  rateLimitHit,
  securityEventsStream,
  tenantAccessDenied,
  textWithheld,
  workspaceIsolationDenied,
} from '../../shared/events/auth/security-events.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import type { Identity, Role } from '../../shared/identity.ts';
import { originOf, type RequestContext } from '../http/context.ts';
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

interface Window {
  readonly endsAt: number;
  readonly length: number;
  /** Security events since the last event was written. */
  unwritten: number;
  readonly command: Pick<CommandContext, 'origin'>;
  readonly make: (count: number) => EventDraft;
}

function createRecorder({ commands, log, now }: Parts) {
  const windows = new Map<string, Window>();
  const inFlight = new Set<Promise<void>>();
  let sweeper: NodeJS.Timeout | undefined;
  let lost = 0;

  function write({ command, make }: Pick<Window, 'command' | 'make'>, count: number): void {
    if (inFlight.size >= MAX_IN_FLIGHT) {
      lost += count;
      return;
    }
    const one = commands
      .record(securityEventsStream(now()), { origin: command.origin }, [make(count)])
      .then(
        () => undefined,
        (error) => log.warn({ err: error }, 'could not record a security event'),
      )
      .finally(() => inFlight.delete(one));
    inFlight.add(one);
  }

  /** Ends windows. A window with a count starts again, so a steady stream of security events gives one event per window. */
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
      log.warn({ lost }, 'too many security events at once; some were not recorded');
      lost = 0;
    }
    if (windows.size > 0) schedule();
  }

  function schedule(): void {
    sweeper ??= setTimeout(() => sweep(false), SWEEP_MS).unref();
  }

  return {
    note(key: string, length: number, begin: () => Pick<Window, 'command' | 'make'>): void {
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
    async drain(): Promise<void> {
      clearTimeout(sweeper);
      sweep(true);
      while (inFlight.size > 0) await Promise.all(inFlight);
    },
  };
}

/** Identifies a caller: by identity when known, else by network address. */
const callerOf = ({ identity, ip }: RequestContext): string =>
  identity ? `${identity.kind}:${identity.id}` : networkOf(ip);

const at = ({ req, route }: RequestContext): string => `${req.method} ${route}`;

type Make = Window['make'];

/** Maximum number of withheld texts in one security event. */
const MAX_TEXTS = 20;

/** One method for each kind of security event. They return at once and never throw. */
export function createSecurityEvents(parts: Parts) {
  const recorder = createRecorder(parts);

  const note = (context: RequestContext, key: string, length: number, make: Make): void =>
    recorder.note(key, length, () => ({ command: { origin: originOf(context) }, make }));
  /** What one caller did. @param what kind, and what else makes two of them different security events */
  const ofCaller = (context: RequestContext, what: string, make: Make): void =>
    note(context, `${callerOf(context)} ${what}`, MINUTE_MS, make);

  return {
    /** A known caller lacks the role for `route`. */
    accessDenied(context: RequestContext, route: string, needed: Role): void {
      ofCaller(context, `denied ${route}`, (count) => accessDenied.draft({ route, needed, count }));
    },
    /** A caller with an agent's key called `route`, which is closed to agents or concerns another agent. */
    agentAccessDenied(context: RequestContext, route: string): void {
      ofCaller(context, `agent ${route}`, (count) => agentAccessDenied.draft({ route, count }));
    },
    /** A caller from outside the default tenant called `route`, which concerns the whole deployment. */
    tenantAccessDenied(context: RequestContext, route: string): void {
      ofCaller(context, `foreign ${route}`, (count) => tenantAccessDenied.draft({ route, count }));
    },
    /** A caller of a strict workspace called `route`, which concerns a `resource` that workspaces share. */
    isolationDenied(context: RequestContext, route: string, resource: string): void {
      ofCaller(context, `isolated ${route}`, (count) => workspaceIsolationDenied.draft({ route, resource, count }));
    },
    /** A caller exceeded a rate limit. */
    rateLimitHit(context: RequestContext, limit: string): void {
      const route = at(context);
      ofCaller(context, `limited ${limit} ${route}`, (count) => rateLimitHit.draft({ route, limit, count }));
    },
    /** A text from a caller was refused as an attempt to take over an agent: it broke these `rules`. */
    injectionRefused(context: RequestContext, rules: readonly string[]): void {
      const route = at(context);
      const make: Make = (count) => injectionRefused.draft({ route, rules: [...rules], count });
      ofCaller(context, `injection ${route} ${rules.join()}`, make);
    },
    /** Texts that try to take over an agent were withheld from what it gets by this `tool`. */
    textWithheld(context: RequestContext, tool: string, breaches: readonly Breach[]): void {
      const texts = breaches.slice(0, MAX_TEXTS).map((one) => ({ ...one, rules: [...one.rules] }));
      const make: Make = (count) => textWithheld.draft({ tool, texts, count });
      ofCaller(context, `withheld ${tool} ${JSON.stringify(texts)}`, make);
    },
    /** A caller sent an invalid API key. */
    apiKeyRefused(context: RequestContext): void {
      const route = at(context);
      const anonymous = { ...context, identity: null };
      ofCaller(anonymous, 'wrong key', (count) => apiKeyRefused.draft({ route, count }));
    },
    /** A request was authenticated with the global key; `identity` is the resulting caller. */
    globalKeyUsed(context: RequestContext, identity: Identity): void {
      // Nearly every request falls into a window that has begun, which needs neither route nor origin.
      recorder.note(`key ${networkOf(context.ip)}`, HOUR_MS, () => {
        const route = at(context);
        const make: Make = (count) => globalKeyUsed.draft({ route, count });
        return { command: { origin: originOf({ ...context, identity }) }, make };
      });
    },
    /** The proxy header was sent, but no address is trusted to send it. */
    proxyMisconfigured(context: RequestContext, header: string): void {
      // One window for all callers: the fault is in the deployment's configuration.
      note(context, 'proxy', HOUR_MS, (count) => proxyAuthMisconfigured.draft({ header, count }));
    },
    /** Writes the pending counts and waits for them: for shutdown and tests. */
    drain: recorder.drain,
  };
}
export type SecurityEvents = ReturnType<typeof createSecurityEvents>;
