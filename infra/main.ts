/** The service: stores, projections, API and background work of one process, started and stopped in order. */

import type { AddressInfo } from 'node:net';
import { createCredentialCheck } from '../api/auth/recheck.ts';
import { createSecurityEvents, type SecurityEvents } from '../api/auth/security-events.ts';
import { createAccountGuard } from '../api/http/limits.ts';
import { createApiServer } from '../api/http/server.ts';
import { shutdownOf } from '../api/http/shutdown.ts';
import { routes } from '../api/routes/index.ts';
import type { Services } from '../api/services.ts';
import { createStreamHub } from '../api/stream/hub.ts';
import { sourceOf } from '../api/stream/source.ts';
import { createGatewaySessions } from '../commands/admin/gateway-sessions.ts';
import { createRecentCounts } from '../commands/limits.ts';
import { createTaskQueue } from '../commands/tasks/queue.ts';
import { projections } from '../projections/index.ts';
import { eachIsEvent } from '../queries/agents/leases.ts';
import { createBacktests } from '../queries/alerts/backtests.ts';
import { peopleDirectory } from '../queries/auth/people.ts';
import { createDisplayNames } from '../queries/names.ts';
import { createRecords } from '../queries/records.ts';
import { taskQueueReads } from '../queries/tasks/queue.ts';
import { createIsolations } from '../queries/workspaces/isolation.ts';
import type { Jobs } from '../shared/ports/jobs.ts';
import { MINUTE } from '../shared/time.ts';
import type { Config, ProcessRole } from './config.ts';
import { type Core, isAlone, openCore } from './core.ts';
import { prepareFirstStart } from './credentials/first-start.ts';
import type { Database } from './database/database.ts';
import { waitForStore } from './database/wait.ts';
import { createGathering } from './following/gathering.ts';
import { followLive } from './following/live.ts';
import { readHostOf } from './host.ts';
import { loadBullMQ, openJobs } from './jobs/jobs.ts';
import { createScheduler } from './jobs/scheduler.ts';
import { createLogIndex } from './log-index/log-index.ts';
import type { Logger, TakenLines } from './logging.ts';
import { createMetrics } from './metrics.ts';
import { createGateways } from './outgoing/admin/gateways.ts';
import { createGoogleVerifier } from './outgoing/auth/google.ts';
import { createOidc } from './outgoing/auth/oidc.ts';
import { createGithub } from './outgoing/github/client.ts';
import { outgoingOf } from './outgoing/post.ts';
import { createReleases } from './outgoing/releases.ts';
import { registerProcess } from './processes.ts';
import { type Keeper, startKeeper } from './proof/keeper.ts';
import { openSigner } from './proof/keys.ts';
import { createProofs } from './proof/proofs.ts';
import { type Projector, startProjector } from './read-models/projector.ts';
import { sharedQueries } from './read-models/shared-queries.ts';
import { createReadiness } from './readiness.ts';
import { createLimitStores } from './redis/limits.ts';
import { schedulesOf } from './schedules.ts';
import { createScheduleRuns } from './stores/admin/scheduler.ts';
import { createIdempotencyStore } from './stores/idempotency.ts';
import { createLogEntries, keepLines } from './stores/monitoring/logs.ts';
import { createWebhookRecords } from './stores/webhooks/queue.ts';
import { createBackups } from './tools/backup.ts';
import { CODE, VERSION } from './version.ts';
import { startWork, type Work } from './work.ts';

export interface Service {
  /** `http://host:port`; undefined for roles without an API. */
  readonly url: string | undefined;
  readonly core: Core;
  /** The API's recorder of security events; undefined for roles without an API. */
  readonly securityEvents: SecurityEvents | undefined;
  /** Resolves when the service can no longer work and should exit. */
  readonly failed: Promise<Error>;
  /** Accepts no new requests, finishes those in flight, stops the rest. */
  close(): Promise<void>;
}

export interface StartOptions {
  /** A database that is already being opened; by default it is opened here. */
  readonly database?: Promise<Database>;
  /** Log lines that should be stored in the database. */
  readonly taken?: TakenLines;
  /**
   * Receives the lines with generated credentials as soon as they are valid: the start may still fail, and the next
   * start generates none.
   */
  readonly showCredentials?: (lines: readonly string[]) => void;
}

/**
 * Starts one process. Resolves when its stores are reachable and its port is open; reads of read models that are still
 * being built are refused until they are complete.
 */
export async function startService(
  config: Config,
  log: Logger,
  role: ProcessRole = 'all',
  options: StartOptions = {},
): Promise<Service> {
  const { taken, showCredentials } = options;
  // Loaded while the stores open, so that loading it does not delay the first responses. A failure is reported where
  // the module is used.
  if (role === 'all' || role === 'worker') loadBullMQ().catch(() => undefined);
  const core = await openCore(config, log, { database: options.database });
  const undo: (() => Promise<unknown>)[] = [() => core.close()];
  try {
    const { database, store, positions, following, commands, credentials, reads } = core;
    const logs = createLogEntries(database.pool);
    if (taken) undo.push(keepLines(logs, taken, core.process));
    const startBy = Date.now() + config.startTimeoutMs;
    const runs = { api: role === 'all' || role === 'api', projector: role === 'all' || role === 'projector' };
    const runsWorker = role === 'all' || role === 'worker';
    const registered = await registerProcess(core, role, VERSION, startBy);
    undo.push(() => registered.remove());

    await openSigner(database.pool, config, true);
    let projector: Projector | undefined;
    let keeper: Keeper | undefined;
    if (runs.projector) {
      // Without another process, every read runs in this one, and can wait.
      const alone = isAlone(database) && runs.api;
      const gathering = alone ? createGathering(() => positions.isAwaited()) : undefined;
      if (gathering) positions.onWait(gathering.end);
      projector = startProjector(projections, core, { gathering, rowWrites: core.rowWrites });
      const started = projector;
      undo.push(() => started.close());
      keeper = startKeeper({ ...core, signs: true });
      undo.push(async () => keeper?.close());
    }
    // On a server, projectors of other processes may be leaders.
    if (database.kind === 'server') positions.watch();
    const head = await waitForStore('the event log', () => core.eventLog.head(), startBy, log);
    await following.reader.started(AbortSignal.timeout(Math.max(startBy - Date.now(), 1)));

    const metrics = createMetrics(core, projector);
    const ready = createReadiness(core, { projector, registered, start: head });
    let url: string | undefined;
    let securityEvents: SecurityEvents | undefined;
    let work: Work | undefined;
    if (runs.api) {
      const first = { config, commands, credentials, log, waitMs: startBy - Date.now() };
      await prepareFirstStart({ ...first, reads: reads.at({}), show: showCredentials });
      const limits = await createLimitStores(config.redisUrl, log);
      undo.push(() => limits.close());
      const freshness = positions;
      const queries = sharedQueries(reads, freshness, Date.now);
      const { displayNames, taskProjects } = queries;
      const namesAtOnce = createDisplayNames({ reads, freshness, waits: false });
      const recorded = createSecurityEvents({ commands, log, now: Date.now });
      securityEvents = recorded;
      // Those of the worker in this process, or else opened at the first request to run a scheduled task.
      let opened: Promise<Jobs> | undefined;
      const scheduler = createScheduler({
        schedules: schedulesOf(core),
        runs: createScheduleRuns(database.pool, log),
        async jobs() {
          opened ??= work ? Promise.resolve(work.jobs) : openJobs(core);
          return opened;
        },
        now: Date.now,
        gate: core.pause.refuse,
      });
      undo.push(async () => {
        await (await opened)?.close();
      });
      const gate = core.pause.refuse;
      const gateways = createGateways({ gate });
      const services: Services = {
        settings: config,
        version: VERSION,
        log,
        commands,
        store,
        ...queries,
        records: createRecords({ reads, store }),
        readModels: positions,
        credentials,
        freshness,
        leases: core.leases,
        eachIsEvent: eachIsEvent(reads, freshness, config),
        queue: createTaskQueue({ commands, reads: taskQueueReads(reads), locks: core.locks }),
        logs,
        logIndex: createLogIndex({
          database,
          eventLog: core.eventLog,
          timeoutMs: config.visibleTimeoutMs,
          hurry: () => keeper?.hurry(),
        }),
        proofs: createProofs(database, config),
        scheduler,
        gateways,
        gatewaySessions: createGatewaySessions({ commands, gateways, now: () => performance.now() }),
        github: createGithub({ ...config, gate }),
        backups: createBackups(core),
        pause: core.pause,
        backtests: createBacktests({ reads, store, now: Date.now, everySeconds: config.alertSeconds || MINUTE }),
        host: readHostOf(config.dataDir),
        releases: createReleases({ ...config, gate }),
        idempotency: createIdempotencyStore(database.pool, core.process),
        locks: core.locks,
        recentCounts: createRecentCounts(Date.now),
        webhooks: createWebhookRecords(database.pool),
        outgoing: outgoingOf({ ...config, gate }),
        metrics,
        limitStore: limits.storeFor,
        accountGuard: createAccountGuard({ limitStore: limits.storeFor, now: Date.now }, (context) =>
          recorded.rateLimitHit(context, 'wrong-password'),
        ),
        ready,
        securityEvents: recorded,
        isolation: createIsolations({ reads, freshness }),
        namesAtOnce,
        people: peopleDirectory(() => reads),
        personRecords: core.personRecords,
        verifyGoogleToken: createGoogleVerifier(config),
        oidc: createOidc(config, log),
        consoleFolder: new URL('console/', CODE),
        stream: createStreamHub({
          source: { ...sourceOf(store), follow: (options) => followLive(following.reader, options) },
          credentials: createCredentialCheck({ reads, credentials, freshness }),
          names: { people: displayNames, projects: taskProjects },
          log,
          metrics,
        }),
      };
      const server = createApiServer(routes, services);
      const shutDown = shutdownOf(server);
      undo.push(() => services.stream.close());
      undo.push(() => recorded.drain());
      await new Promise<void>((resolve, reject) => {
        server.on('error', (error) => {
          reject(cannotListen(error, config));
          if (server.listening) log.error({ err: error }, 'could not accept a connection');
        });
        server.listen(config.port, config.host, resolve);
      });
      undo.push(() => {
        services.stream.end();
        return shutDown(config.shutdownTimeoutMs);
      });
      const { port } = server.address() as AddressInfo;
      url = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`;
    }
    if (runsWorker) {
      const started = await startWork(core);
      work = started;
      undo.push(() => started.close());
    }
    log.info({ url, role, database: database.kind, version: VERSION }, 'ready');

    let closing: Promise<void> | undefined;
    return {
      url,
      core,
      securityEvents,
      failed: database.failed,
      close() {
        closing ??= (async () => {
          for (const step of undo.reverse()) await step();
        })();
        return closing;
      },
    };
  } catch (error) {
    for (const step of undo.reverse()) await step();
    throw error;
  }
}

/** Says which setting to change when the port cannot be opened. */
function cannotListen(error: NodeJS.ErrnoException, { host, port }: Pick<Config, 'host' | 'port'>): Error {
  const because = (text: string) => new Error(text, { cause: error });
  switch (error.code) {
    case 'EADDRINUSE':
      return because(
        `port ${port} on ${host} is in use by another program. Stop that program, or set PORT to another port (0 picks a free one).`,
      );
    case 'EACCES':
      return because(`this user is not allowed to listen on port ${port}. Set PORT to 1024 or higher.`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return because(
        `HOST is ${host}, which is not an address of this machine. Set HOST to one that is, such as 127.0.0.1, or 0.0.0.0 for all of them.`,
      );
    default:
      return error;
  }
}
