/** `signalbox start`: runs one process of the service until it is stopped. */
import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import { Option } from 'commander';
import { type Config, PROCESS_ROLES, type ProcessRole, readConfig } from '../config.ts';
import { type Database, openConfigured } from '../database/database.ts';
import { createLogger, holdLines, type Logger, traceIds } from '../logging.ts';
import { type TracingSettings, tracingSettingsOf } from '../tracing/settings.ts';

/** How much longer than SHUTDOWN_TIMEOUT_MS a shutdown may take, ms: an unresponsive store must not block it. */
const SILENCE_MS = 5_000;
/**
 * Growth of the heap, in percent of its live size, after which V8 collects garbage again. On machines with much memory,
 * the default lets it quadruple (docs/benchmarks.md).
 */
const HEAP_GROWTH = 100;
/** Time limit for sending the last spans, milliseconds. */
const LAST_SPANS_MS = 3_000;

/** Draws a box around lines, so that credentials shown once stand out. */
export function box(lines: readonly string[]): string {
  const width = Math.max(...lines.map((line) => line.length));
  const bar = '─'.repeat(width + 2);
  return [`┌${bar}┐`, ...lines.map((line) => `│ ${line.padEnd(width)} │`), `└${bar}┘`].join('\n');
}

/**
 * Opens the database in its own thread while this thread loads the rest of the code. `startService` reports a failure.
 */
async function openingDatabase(config: Config, log: Logger): Promise<{ readonly opened: Promise<Database> }> {
  let launched = (): void => undefined;
  const waiting = new Promise<void>((resolve) => {
    launched = resolve;
  });
  const opened = openConfigured(config, log, { launched });
  opened.catch(launched);
  await waiting;
  return { opened };
}

export function addStart(program: Command): void {
  program
    .command('start')
    .description('run the service')
    .addOption(new Option('--role <role>', 'the work of this process').choices(PROCESS_ROLES).default('all'))
    .action(async (options: { role: ProcessRole }) => {
      const config = readConfig(process.env);
      setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`);
      const warnings: string[] = [];
      const traces = tracingSettingsOf(process.env, (message) => warnings.push(message));
      // The reader of the output may exit; the service continues.
      for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
      const taken = holdLines();
      const log = createLogger(config.logLevel, 'stdout', taken, traces && traceIds);
      for (const message of warnings) log.warn(message);
      process.on('unhandledRejection', (error) => {
        log.fatal({ err: error }, 'unhandled rejection; exiting');
        process.exit(1);
      });
      let end = (reason: string, _code: number): void => {
        log.info({ reason }, 'stopping before startup was complete');
        process.exit(0);
      };
      process.on('SIGTERM', () => end('SIGTERM', 0));
      process.on('SIGINT', () => end('SIGINT', 0));
      const database = await openingDatabase(config, log);
      const startTraces = async (settings: TracingSettings) => {
        const { startTracing } = await import('../tracing/tracing.ts');
        const { proxyAgentOf } = await import('../outgoing/proxy.ts');
        return startTracing(settings, log, proxyAgentOf);
      };
      const tracing = traces && (await startTraces(traces));
      const { startService } = await import('../main.ts');
      const service = await startService(config, log, options.role, {
        database: database.opened,
        taken,
        showCredentials: (lines) =>
          console.log(box([...lines, '', 'Shown only once. Keep them; only hashes are stored.'])),
      });
      // Keeps a process without HTTP alive while stores are unavailable: the timers that wait for them do not.
      setInterval(() => undefined, 2 ** 30);
      if (service.url)
        console.log(
          `Signalbox is ready at ${service.url} (interactive documentation at ${config.publicUrl ?? service.url}/docs)`,
        );

      let stopping = false;
      const stop = (reason: string, code: number) => {
        if (stopping) process.exit(code || 1);
        stopping = true;
        log.info({ reason }, 'stopping; requests in flight are finished first, a second signal exits at once');
        setTimeout(() => {
          log.warn('shutdown took too long because a store does not respond; exiting');
          process.exit(1);
        }, config.shutdownTimeoutMs + SILENCE_MS);
        const closed = service.close();
        const sent = closed.then(() => tracing?.close(Math.min(config.shutdownTimeoutMs, LAST_SPANS_MS)));
        sent.then(
          () => process.exit(code),
          (error) => {
            log.error({ err: error }, 'shutdown failed');
            process.exit(1);
          },
        );
      };
      end = stop;
      const gone = (error: unknown) => {
        log.fatal({ err: error }, 'a store that the service depends on is gone');
        stop('store gone', 1);
      };
      service.failed.then(gone, gone);
    });
}
