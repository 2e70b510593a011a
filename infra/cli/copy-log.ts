/** `signalbox copy-log`: copies a deployment's log from one store to another. */
import { randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { archiveDirOf, readConfig, STREAM_PREFIX } from '../config.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { migrate, refuseOtherFormats } from '../database/migrations.ts';
import { holdsDatabase } from '../embedded/embedded.ts';
import { createLogger, type Logger } from '../logging.ts';
import { openPostgresLog } from '../postgres/event-log.ts';
import { GONE_MS } from '../processes.ts';
import { CopyError, type CopySide, copyLog } from '../tools/copy-log.ts';
import { withProgress } from './progress.ts';
import { counted } from './with-core.ts';

interface Options {
  readonly from: string;
  readonly to: string;
  readonly fromDatabase?: string;
  readonly toDatabase?: string;
  readonly fromPrefix?: string;
  readonly toPrefix?: string;
  readonly logOnly?: boolean;
}

/** Long, because a store that does not respond may have stored the append. */
const APPEND_TIMEOUT_MS = 600_000;
const STATEMENT_TIMEOUT_MS = 300_000;

interface Place {
  readonly kind: 'directory' | 'postgres' | 'eventstore';
  /** Directory or URL. */
  readonly address: string;
  readonly name: string;
  /** Prefix of the streams on an event store server. */
  readonly prefix: string;
}

function placeOf(text: string, prefix = ''): Place {
  const scheme = /^([a-z][a-z+]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) {
    const address = resolve(text.replace(/^embedded:/, ''));
    return { kind: 'directory', address, name: address, prefix: '' };
  }
  // Passwords must not appear in messages.
  const name = text.replace(/\/\/[^/@]*@/, '//');
  if (scheme === 'postgres' || scheme === 'postgresql') return { kind: 'postgres', address: text, name, prefix: '' };
  if (/^(esdb|kurrentdb|kdb)(\+discover)?$/.test(scheme)) {
    if (prefix !== '' && !STREAM_PREFIX.test(prefix))
      throw new Error(
        `${prefix} is not a valid stream prefix; use letters, digits and _ and end with a dot, as in acme.`,
      );
    return { kind: 'eventstore', address: text, name: prefix === '' ? name : `${name} (${prefix})`, prefix };
  }
  throw new Error(
    `${name} is not a valid log location; use embedded:DIRECTORY, postgres://… or esdb://… (also kurrentdb://…).`,
  );
}

/** The bundles of archived events of a place. */
const archiveDirAt = ({ kind, address }: Place): string => {
  const config = readConfig(process.env);
  return archiveDirOf(kind === 'directory' ? { ...config, dataDir: address } : config);
};

/** The database used together with a place. */
function databaseOf(place: Place, given: string | undefined, option: string): Place | undefined {
  if (place.kind !== 'eventstore') return place;
  const url = given ?? readConfig(process.env).databaseUrl;
  if (url === undefined) return undefined;
  const database = placeOf(url);
  if (database.kind === 'eventstore') throw new Error(`${option} must be a database: postgres://…`);
  return database;
}

async function openSide(
  place: Place,
  database: Place | undefined,
  role: 'source' | 'target',
  log: Logger,
  undo: (() => Promise<unknown>)[],
): Promise<CopySide> {
  let opened: Database | undefined;
  if (database) {
    // Opening the database would create it.
    if (role === 'source' && database.kind === 'directory' && !holdsDatabase(database.address)) {
      throw new CopyError(`There is no database in the directory ${database.name}.`);
    }
    opened = await openDatabase({
      url: database.kind === 'postgres' ? database.address : undefined,
      dataDir: database.address,
      poolSize: 6,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      // A source may be read while its service runs; a target must be used by the copy alone.
      attach: role === 'source',
      log,
    });
    const { close } = opened;
    undo.push(close);
    if (role === 'target') await migrate(opened.db);
    else {
      await refuseEmpty(opened, database.name);
      await refuseOtherFormats(opened.db);
    }
    if (role === 'target') await refuseRunning(opened, database.name);
  }
  if (place.kind === 'eventstore') {
    const { address: url, prefix } = place;
    // Imported here because the client is large, and every command loads this file.
    const { openEventStoreLog } = await import('../eventstore/event-log.ts');
    const events = await openEventStoreLog({ url, prefix, log, appendTimeoutMs: APPEND_TIMEOUT_MS });
    undo.push(() => events.close());
    await events.head();
    return { name: place.name, log: events, database: opened };
  }
  const events = openPostgresLog({
    database: opened as Database,
    log,
    archiveDir: archiveDirAt(place),
    appendTimeoutMs: APPEND_TIMEOUT_MS,
  });
  undo.push(() => events.close());
  return { name: place.name, log: events, database: opened };
}

async function refuseEmpty({ pool }: Database, name: string): Promise<void> {
  const { rows } = await pool.query("SELECT to_regclass('log.events') IS NOT NULL AS there");
  if (!(rows[0] as { there: boolean }).there)
    throw new CopyError(`${name} is not a Signalbox database: it has no log.`);
}

/** Different URLs can mean the same database. */
async function refuseSame(source: Database, target: Database): Promise<void> {
  const [one, other] = [await source.pool.connect(), await target.pool.connect()];
  const key = randomInt(2 ** 47);
  try {
    await one.query('SELECT pg_advisory_lock($1)', [key]);
    const { rows } = await other.query('SELECT pg_try_advisory_lock($1) AS free', [key]);
    if (!(rows[0] as { free: boolean }).free) throw new CopyError('Source and target use the same database.');
  } finally {
    // Closing the connection releases the lock.
    one.release(true);
    other.release(true);
  }
}

/** @throws CopyError when a service uses the database */
export async function refuseRunning({ pool }: Database, name: string): Promise<void> {
  const { rows } = await pool.query('SELECT id FROM service.processes WHERE seen_at > $1', [Date.now() - GONE_MS]);
  if (rows.length > 0) {
    throw new CopyError(
      `A service is running on ${name} (${(rows as { id: string }[]).map(({ id }) => id).join(', ')}). Stop it first; a killed process counts as running for ${GONE_MS / 1_000} s.`,
    );
  }
}

export function addCopyLog(program: Command): void {
  program
    .command('copy-log')
    .description('copy the event log, with its keys and checkpoints, to another store; resumes an interrupted copy')
    .requiredOption('--from <place>', 'embedded:DIRECTORY, postgres://… or esdb://…')
    .requiredOption('--to <place>', 'likewise; must be empty or an unfinished copy')
    .option(
      '--from-database <url>',
      'database with counters and credentials of an esdb:// source; default: DATABASE_URL',
    )
    .option('--to-database <url>', 'likewise for an esdb:// target')
    .option('--from-prefix <prefix>', 'stream prefix of an esdb:// source; default: EVENTSTORE_STREAM_PREFIX')
    .option('--to-prefix <prefix>', 'likewise for an esdb:// target')
    .option('--log-only', 'only events; no counters, person keys or credentials')
    .action(async (options: Options) => {
      const { eventStorePrefix } = readConfig(process.env);
      const from = placeOf(options.from, options.fromPrefix ?? eventStorePrefix);
      const to = placeOf(options.to, options.toPrefix ?? eventStorePrefix);
      if (from.address === to.address) {
        if (from.prefix === to.prefix) throw new Error('--from and --to are the same.');
        if (from.prefix === '' || to.prefix === '') {
          throw new Error('On the same server both sides need a prefix: a log without one would include the other.');
        }
      }
      const databases = {
        from: databaseOf(from, options.fromDatabase, '--from-database'),
        to: databaseOf(to, options.toDatabase, '--to-database'),
      };
      if (!options.logOnly) {
        for (const side of ['from', 'to'] as const) {
          if (databases[side]) continue;
          throw new Error(
            `An event store server holds no counters or credentials: pass the database that goes with it as --${side}-database, or use --log-only. Without them a service would assign ids twice and could not read sealed fields.`,
          );
        }
        if (databases.from?.address === databases.to?.address) {
          throw new Error(
            'Source and target use the same database: its read models and policies would keep positions of the old log. Use another database for the target.',
          );
        }
      }
      const log = createLogger('warn', 'stderr');
      const undo: (() => Promise<unknown>)[] = [];
      const side = (place: Place, database: Place | undefined, role: 'source' | 'target') =>
        openSide(place, options.logOnly && place.kind === 'eventstore' ? undefined : database, role, log, undo);
      try {
        const { result } = await withProgress(
          'Interrupted; run the same command again to continue from here.',
          async (watched) => {
            const source = await side(from, databases.from, 'source');
            const target = await side(to, databases.to, 'target');
            if (source.database?.kind === 'server' && target.database?.kind === 'server')
              await refuseSame(source.database, target.database);
            return { source, target, report: await copyLog(source, target, { ...watched, logOnly: options.logOnly }) };
          },
        );
        const { source, target, report } = result;
        console.log(`${counted(report.events, 'event')} in ${to.name}, ${report.copied} of them copied now`);
        for (const [table, count] of Object.entries(report.rows ?? {}))
          console.log(`${counted(count, 'row')} of ${table}`);
        console.log(`SHA-256 of both sides ${report.sha256}`);
        const behind = (await source.log.head()) > 0 && (await isBehind(source, target));
        if (behind)
          console.log(`${from.name} has new events in the meantime: stop its service and run the same command again.`);
        console.log('Read models are built when the service first starts there.');
      } finally {
        for (const close of undo.reverse()) await close();
      }
    });
}

/** Whether the last events of source and target differ. */
async function isBehind(source: CopySide, target: CopySide): Promise<boolean> {
  const last = async ({ log }: CopySide) => {
    for await (const page of log.readAll({ direction: 'backwards', limit: 1 })) return page[0]?.id;
    return undefined;
  };
  return (await last(source)) !== (await last(target));
}
