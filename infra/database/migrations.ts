/**
 * The tables that are not read models: the log, positions, counters, credentials, idempotency. Read models are created
 * from their projections (`infra/read-models/`), each in a schema of its own.
 *
 * Kysely's migrator runs the migrations in order, once per database, in one process at a time (`making.ts`). Their names,
 * which it records in the database, are also the mark of its format.
 */
import { createHash } from 'node:crypto';
import { type Migration, Migrator, sql } from 'kysely';
import type { AnyDatabase } from './database.ts';

export type Migrations = Readonly<Record<string, Migration>>;

const statements = (texts: readonly string[]): Migration => ({
  async up(db) {
    for (const text of texts) await sql.raw(text).execute(db);
  },
});

const TABLES: readonly string[] = [
  'CREATE SCHEMA log',
  // A single row: its lock queues the writers, so positions are assigned in commit order and without gaps.
  `CREATE TABLE log.head (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    position bigint NOT NULL
  )`,
  'INSERT INTO log.head (position) VALUES (0)',
  // json rather than jsonb, which would not keep the text as it was written.
  `CREATE TABLE log.events (
    position bigint PRIMARY KEY,
    -- Parts of the metadata (infra/postgres/metadata.ts). Columns of one size come first: they need no padding.
    number bigint,
    at bigint,
    id uuid NOT NULL,
    cause uuid,
    origin uuid,
    revision integer NOT NULL CHECK (revision >= 0),
    stream text NOT NULL,
    type text NOT NULL,
    -- Both null: the contents are in a bundle (infra/postgres/archived.ts).
    data json,
    meta json CHECK ((data IS NULL) = (meta IS NULL)),
    UNIQUE (stream, revision),
    -- The same event cannot be in two streams.
    UNIQUE (id)
  )`,
  // Parts of the log that are in a signed bundle: the position before the first event and that of the last, a time
  // before which all of them were recorded (Unix ms), the root of the tree up to the last event, the hash of the file of
  // events, and the offsets of every 32nd line in it.
  `CREATE TABLE log.archives (
    name text PRIMARY KEY,
    after bigint NOT NULL UNIQUE,
    until bigint NOT NULL UNIQUE CHECK (until > after),
    before bigint NOT NULL,
    root bytea NOT NULL,
    sha256 text NOT NULL,
    offsets bigint[] NOT NULL
  )`,
  `CREATE FUNCTION log.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_LEVEL = 'ROW' THEN
        -- An archived event may lose its contents, and nothing else.
        IF num_nonnulls(NEW.data, NEW.meta, NEW.number, NEW.at, NEW.cause, NEW.origin) = 0
          AND EXISTS (SELECT FROM log.archives WHERE OLD.position > after AND OLD.position <= until)
        THEN RETURN NEW;
        END IF;
      END IF;
      RAISE EXCEPTION 'the event log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME;
    END $$`,
  // What the metadata of several events has in common.
  'CREATE TABLE log.origins (id uuid PRIMARY KEY, meta json NOT NULL)',
  `CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log.origins
    FOR EACH STATEMENT EXECUTE FUNCTION log.refuse_change()`,
  `CREATE TRIGGER append_only BEFORE UPDATE OF position, id, stream, revision, type OR DELETE OR TRUNCATE ON log.events
    FOR EACH STATEMENT EXECUTE FUNCTION log.refuse_change()`,
  `CREATE TRIGGER archived_only BEFORE UPDATE OF data, meta, number, at, cause, origin ON log.events
    FOR EACH ROW EXECUTE FUNCTION log.refuse_change()`,
  'CREATE SCHEMA service',
  'CREATE TABLE service.counters (name text PRIMARY KEY, value bigint NOT NULL CHECK (value >= 0))',
  // `changed` is the position of the last batch that changed a row: anything read since then is still current.
  // `generation` changes when a rebuild swaps the tables; a follower that still has cached rows of the old ones is
  // then fenced. The versions of a read model's rows (`infra/read-models/history.ts`) cover every position from
  // `history_from` to `history_to`, unless the tables have advanced without writing versions.
  `CREATE TABLE service.checkpoints (
    schema_name text PRIMARY KEY,
    projection text NOT NULL,
    version integer NOT NULL,
    generation integer NOT NULL DEFAULT 1,
    position bigint NOT NULL DEFAULT 0 CHECK (position >= 0),
    changed bigint NOT NULL DEFAULT 0,
    leader text,
    stuck_at bigint,
    stuck_reason text,
    updated_at bigint NOT NULL DEFAULT 0,
    history_from bigint,
    history_to bigint
  )`,
  `CREATE TABLE service.processes (
    id text PRIMARY KEY,
    role text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    started_at bigint NOT NULL,
    seen_at bigint NOT NULL
  )`,
  `CREATE TABLE service.idempotency (
    scope text NOT NULL,
    key_hash bytea NOT NULL,
    request_hash bytea NOT NULL,
    state text NOT NULL CHECK (state IN ('running', 'done')),
    owner text NOT NULL,
    locked_until bigint NOT NULL,
    box bytea,
    created_at bigint NOT NULL,
    PRIMARY KEY (scope, key_hash)
  )`,
  `CREATE TABLE service.snapshots (
    stream text PRIMARY KEY,
    kind text NOT NULL,
    revision integer NOT NULL,
    position bigint NOT NULL,
    at bigint NOT NULL,
    state json NOT NULL
  )`,
  'CREATE INDEX idempotency_created ON service.idempotency (created_at)',
  'CREATE SCHEMA credentials',
  'CREATE TABLE credentials.person_keys (person text PRIMARY KEY, key bytea NOT NULL, created_at bigint NOT NULL)',
  'CREATE TABLE credentials.passwords (id uuid PRIMARY KEY, user_id bigint NOT NULL, hash text NOT NULL, created_at bigint NOT NULL)',
  `CREATE TABLE credentials.sessions (
    token_hash bytea PRIMARY KEY,
    user_id bigint NOT NULL,
    credential text NOT NULL,
    ip text,
    user_agent text,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
  )`,
  'CREATE INDEX sessions_user ON credentials.sessions (user_id)',
  'CREATE INDEX sessions_expiry ON credentials.sessions (expires_at)',
  `CREATE TABLE credentials.keys (
    key_hash bytea PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('global', 'agent')),
    key_id bigint NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint
  )`,
  'CREATE INDEX keys_id ON credentials.keys (kind, key_id)',
  // While `version` does not change, other processes may use their cached credentials. `position`: that of the last
  // acknowledged event that changes what a credential stands for.
  `CREATE TABLE credentials.version (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint NOT NULL,
    position bigint NOT NULL DEFAULT 0
  )`,
  'INSERT INTO credentials.version (version) VALUES (1)',
  'CREATE TABLE credentials.secrets (name text PRIMARY KEY, value bytea NOT NULL, created_at bigint NOT NULL)',
  // The log has been delivered up to `position`, and a worker has looked at it up to `seen`. From `resume_at` (Unix
  // ms) on there is work. `erasures` counts erasures of texts from its deliveries.
  `CREATE TABLE service.webhooks (
    webhook_id bigint PRIMARY KEY,
    workspace_id integer NOT NULL,
    position bigint NOT NULL,
    seen bigint NOT NULL,
    resume_at bigint,
    failures integer NOT NULL DEFAULT 0,
    last_fired_at bigint,
    last_status integer,
    lease text,
    leased_until bigint NOT NULL DEFAULT 0,
    claimed_at bigint NOT NULL DEFAULT 0,
    erasures integer NOT NULL DEFAULT 0
  )`,
  'CREATE INDEX webhooks_workspace ON service.webhooks (workspace_id)',
  `CREATE TABLE service.webhook_deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id bigint NOT NULL REFERENCES service.webhooks ON DELETE CASCADE,
    workspace_id integer NOT NULL,
    message_id text NOT NULL,
    event_type text NOT NULL,
    payload text NOT NULL,
    status_code integer,
    response_body text,
    error text,
    duration_ms integer NOT NULL,
    attempt integer NOT NULL,
    parent_id bigint,
    next_retry_at bigint,
    created_at bigint NOT NULL
  )`,
  'CREATE INDEX webhook_deliveries_webhook ON service.webhook_deliveries (webhook_id, id)',
  'CREATE INDEX webhook_deliveries_workspace ON service.webhook_deliveries (workspace_id, id)',
  'CREATE INDEX webhook_deliveries_message ON service.webhook_deliveries (webhook_id, message_id)',
  'CREATE INDEX webhook_deliveries_retry ON service.webhook_deliveries (webhook_id, next_retry_at) WHERE next_retry_at IS NOT NULL',
  // json, because it keeps the order of the fields in the service's lines.
  `CREATE TABLE service.log_entries (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace integer NOT NULL,
    id text NOT NULL,
    at bigint NOT NULL,
    level text NOT NULL,
    source text NOT NULL,
    session text,
    message text NOT NULL,
    data json,
    bytes integer NOT NULL
  )`,
  'CREATE INDEX log_entries_newest ON service.log_entries (workspace, seq)',
  'CREATE INDEX log_entries_age ON service.log_entries (at)',
  // One row per schedule: its last scheduled run, and its last run on request.
  `CREATE TABLE service.schedule_runs (
    schedule text PRIMARY KEY,
    running_since bigint,
    last_run bigint,
    last_ok boolean,
    last_message text,
    last_at bigint,
    asked text,
    asked_ok boolean,
    asked_message text,
    asked_fault text
  )`,
  // PostgreSQL empties an unlogged table when it recovers from a crash. It then also loses transactions that did not
  // wait for the disk: rows of read models. So while the mark is the same, nothing was lost
  // (`infra/database/mark.ts`).
  'CREATE UNLOGGED TABLE service.mark (one boolean PRIMARY KEY DEFAULT true CHECK (one), mark uuid NOT NULL)',
  // One row for each event, on every kind of event log: its leaf in the tree (infra/proof), and the columns for
  // looking events up. `number` counts from 0. `latest`: the latest `at` of any event up to here. Like positions it
  // never decreases, so both can be found by binary search, without an index. Texts are indexed by their hash, which
  // takes a third of the space. Ids are not unique here: an event store server accepts one twice, in two streams.
  `CREATE TABLE log.entries (
    number bigint PRIMARY KEY,
    position bigint NOT NULL,
    at bigint NOT NULL,
    latest bigint NOT NULL,
    id uuid NOT NULL,
    correlation uuid NOT NULL,
    causation uuid,
    revision integer NOT NULL,
    stream text NOT NULL,
    type text NOT NULL,
    actor text NOT NULL,
    actor_name text NOT NULL,
    leaf bytea NOT NULL
  )`,
  'CREATE INDEX entries_id ON log.entries (id)',
  'CREATE INDEX entries_earlier ON log.entries (number) WHERE at < latest',
  // By blocks of numbers: entries of one value and block share an index entry (infra/log-index/listing.ts).
  ...['stream', 'type', 'actor', 'actor_name'].map(
    (column) => `CREATE INDEX entries_${column} ON log.entries (hashtext(${column}), (number >> 10))`,
  ),
  'CREATE INDEX entries_correlation ON log.entries (correlation)',
  // Events that a request causes also have its id as their correlation.
  'CREATE INDEX entries_causation ON log.entries (causation, number) WHERE causation <> correlation',
  // Roots of complete trees with 16, 256, 4,096 … leaves (level 1, 2, 3 …).
  'CREATE TABLE log.nodes (level integer, index bigint, hash bytea NOT NULL, PRIMARY KEY (level, index))',
  // Every public key that has signed checkpoints. After a restore that lost events, a log continues under another
  // origin: `kept` is the number of events of the earlier one that still exist.
  `CREATE TABLE credentials.log_keys (
    origin text NOT NULL,
    public_key bytea NOT NULL,
    created_at bigint NOT NULL,
    retired_at bigint,
    kept bigint,
    PRIMARY KEY (origin, public_key)
  )`,
  `CREATE TABLE credentials.log_checkpoints (
    origin text NOT NULL,
    size bigint NOT NULL,
    note text NOT NULL,
    signed_at bigint NOT NULL,
    PRIMARY KEY (origin, size)
  )`,
  'CREATE INDEX log_checkpoints_size ON credentials.log_checkpoints (size)',
  // The newest checkpoint need not be the largest: a restored log continues under another origin, with fewer events.
  'CREATE INDEX log_checkpoints_signed ON credentials.log_checkpoints (signed_at, size)',
  // Heartbeats that the log does not have yet (`infra/stores/agents/leases.ts`). `beats` counts those since the last
  // window was closed, `closed_beats` those of the window whose summary may not be in the log, or not shown yet. After a
  // window, `last_at` stays. Times in Unix seconds.
  `CREATE TABLE service.leases (
    workspace_id integer NOT NULL,
    agent_id bigint NOT NULL,
    tenant_id integer NOT NULL,
    beats integer NOT NULL DEFAULT 0,
    first_at bigint NOT NULL DEFAULT 0,
    last_at bigint NOT NULL DEFAULT 0,
    connection_id text,
    connection_at bigint,
    window_id bigint,
    closed_beats integer NOT NULL DEFAULT 0,
    closed_first bigint NOT NULL DEFAULT 0,
    closed_last bigint NOT NULL DEFAULT 0,
    revoked_at bigint,
    PRIMARY KEY (workspace_id, agent_id)
  ) WITH (fillfactor = 40)`,
  // Their sum changes with each statement that renews leases: cached responses then are no longer current.
  'CREATE TABLE service.lease_moves (slot integer PRIMARY KEY, moves bigint NOT NULL) WITH (fillfactor = 10)',
  'INSERT INTO service.lease_moves SELECT slot, 0 FROM generate_series(0, 15) AS slot',
  // A row: restored from a backup and not resumed (`infra/stores/admin/pause.ts`); Unix seconds.
  'CREATE TABLE service.pause (one boolean PRIMARY KEY DEFAULT true CHECK (one), since bigint NOT NULL)',
];

/**
 * Until 1.0.0 the tables are changed in place, so the name says which ones they are: a database of others is refused.
 */
export const migrations: Migrations = {
  [`0001_tables_${createHash('sha256').update(TABLES.join()).digest('hex').slice(0, 8)}`]: statements(TABLES),
};

const MIGRATION_SCHEMA = 'migrations';
/** The table of Kysely's migrator for executed migrations. */
export const MIGRATION_TABLE = `${MIGRATION_SCHEMA}.kysely_migration`;

/** Runs every migration, without recording it. */
export async function runMigrations(db: AnyDatabase): Promise<void> {
  for (const migration of Object.values(migrations)) await migration.up(db);
}

/**
 * Migrates the database to the latest version.
 *
 * @throws the error of the migration that failed, or as `refuseOtherFormats`
 */
export async function migrate(db: AnyDatabase, all = migrations): Promise<void> {
  if (await isUpToDate(db, all)) return;
  const migrator = new Migrator({
    db,
    provider: { getMigrations: () => Promise.resolve({ ...all }) },
    migrationTableSchema: MIGRATION_SCHEMA,
  });
  const { error } = await migrator.migrateToLatest();
  if (error) throw error;
}

/** @throws Error unless the database has the tables that this program needs */
export async function requireMigrated(db: AnyDatabase): Promise<void> {
  if (await isUpToDate(db)) return;
  throw new Error(
    'the database was made by an older version of Signalbox, and this command changes nothing in it. `signalbox prepare` of this version brings it up to date.',
  );
}

/**
 * Whether every migration has run. Kysely's migrator first inspects every table of the database, which was the slowest
 * step of a start without migrations.
 *
 * @throws as `refuseOtherFormats`
 */
export async function isUpToDate(db: AnyDatabase, all = migrations): Promise<boolean> {
  return (await refuseOtherFormats(db, all)).length === Object.keys(all).length;
}

/**
 * Refuses a database that this program cannot read.
 *
 * @returns the names of the migrations that have run
 * @throws Error for a database that has a migration unknown to this program
 */
export async function refuseOtherFormats(db: AnyDatabase, all = migrations): Promise<readonly string[]> {
  const done = await executed(db);
  const unknown = done.filter((name) => !(name in all));
  if (unknown.length === 0) return done;
  const [first = ''] = Object.keys(all);
  throw done.includes(first)
    ? new Error(
        `the database was migrated by a newer version of Signalbox (${unknown.join(', ')}): start that version or a newer one.`,
      )
    : formerDatabase();
}

export const formerDatabase = (): Error =>
  new Error(
    'the database was made by a version of Signalbox before 1.0.0, which no other version reads: start with an empty DATA_DIR or database, or use the version that made this one.',
  );

async function executed(db: AnyDatabase): Promise<readonly string[]> {
  try {
    const { rows } = await sql<{ name: string }>`SELECT name FROM ${sql.table(MIGRATION_TABLE)}`.execute(db);
    return rows.map(({ name }) => name);
  } catch (error) {
    // No such table: nothing has been migrated yet.
    if ((error as { code?: string }).code === '42P01') return [];
    throw error;
  }
}
