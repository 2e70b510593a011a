/**
 * The tables that are not read models: the log, positions, counters, credentials, idempotency. Read models are created
 * from their projections (`infra/read-models/`), each in a schema of its own.
 *
 * Kysely's migrator runs the migrations in order, once per database, in one process at a time (`making.ts`).
 */
import { type Migration, Migrator, sql } from 'kysely';
import type { AnyDatabase } from './database.ts';

const statements = (...texts: string[]): Migration => ({
  async up(db) {
    for (const text of texts) await sql.raw(text).execute(db);
  },
});

const migrations: Record<string, Migration> = {
  '0001_log': statements(
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
      id uuid NOT NULL,
      stream text NOT NULL,
      revision integer NOT NULL CHECK (revision >= 0),
      type text NOT NULL,
      data json NOT NULL,
      meta json NOT NULL,
      UNIQUE (stream, revision),
      UNIQUE (id, stream)
    )`,
    `CREATE FUNCTION log.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION 'the event log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME;
      END $$`,
    `CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log.events
      FOR EACH STATEMENT EXECUTE FUNCTION log.refuse_change()`,
  ),
  '0002_service': statements(
    'CREATE SCHEMA service',
    'CREATE TABLE service.counters (name text PRIMARY KEY, value bigint NOT NULL CHECK (value >= 0))',
    // `changed` is the position of the last batch that changed a row: anything read since then is still current.
    // `generation` changes when a rebuild swaps the tables; a follower that still has cached rows of the old ones is
    // then fenced.
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
      updated_at bigint NOT NULL DEFAULT 0
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
  ),
  '0003_credentials': statements(
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
    // While this number does not change, other processes may use their cached credentials.
    'CREATE TABLE credentials.version (one boolean PRIMARY KEY DEFAULT true CHECK (one), version bigint NOT NULL)',
    'INSERT INTO credentials.version (version) VALUES (1)',
    'CREATE TABLE credentials.secrets (name text PRIMARY KEY, value bytea NOT NULL, created_at bigint NOT NULL)',
  ),
  '0004_webhooks': statements(
    // The log has been delivered up to `position`. There is work while `seen` is behind `wanted`, and again from
    // `resume_at` (Unix ms) on.
    `CREATE TABLE service.webhooks (
      webhook_id bigint PRIMARY KEY,
      workspace_id integer NOT NULL,
      position bigint NOT NULL,
      wanted bigint NOT NULL,
      seen bigint NOT NULL DEFAULT 0,
      resume_at bigint,
      failures integer NOT NULL DEFAULT 0,
      last_fired_at bigint,
      last_status integer,
      lease text,
      leased_until bigint NOT NULL DEFAULT 0,
      claimed_at bigint NOT NULL DEFAULT 0
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
    'CREATE INDEX webhook_deliveries_webhook ON service.webhook_deliveries (webhook_id, id DESC)',
    'CREATE INDEX webhook_deliveries_workspace ON service.webhook_deliveries (workspace_id, id DESC)',
    'CREATE INDEX webhook_deliveries_message ON service.webhook_deliveries (webhook_id, message_id)',
    'CREATE INDEX webhook_deliveries_retry ON service.webhook_deliveries (webhook_id, next_retry_at) WHERE next_retry_at IS NOT NULL',
  ),
  '0005_log_entries': statements(
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
    'CREATE INDEX log_entries_newest ON service.log_entries (workspace, seq DESC)',
    'CREATE INDEX log_entries_age ON service.log_entries (at)',
  ),
  '0006_schedule_runs': statements(
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
      asked_message text
    )`,
  ),
  '0007_marks': statements(
    // PostgreSQL empties an unlogged table when it recovers from a crash. It then also loses transactions that did not
    // wait for the disk: rows of read models. So while the mark is the same, nothing was lost
    // (`infra/database/mark.ts`).
    'CREATE UNLOGGED TABLE service.mark (one boolean PRIMARY KEY DEFAULT true CHECK (one), mark uuid NOT NULL)',
    // Position of the last acknowledged event that changes what a credential stands for.
    'ALTER TABLE credentials.version ADD COLUMN position bigint NOT NULL DEFAULT 0',
  ),
  '0008_proof': statements(
    // The same event cannot be in two streams.
    'ALTER TABLE log.events DROP CONSTRAINT events_id_stream_key, ADD UNIQUE (id)',
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
    'CREATE INDEX entries_stream ON log.entries (hashtext(stream), number)',
    'CREATE INDEX entries_type ON log.entries (hashtext(type), number)',
    'CREATE INDEX entries_actor ON log.entries (hashtext(actor), number)',
    'CREATE INDEX entries_actor_name ON log.entries (hashtext(actor_name), number)',
    'CREATE INDEX entries_correlation ON log.entries (correlation, number)',
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
  ),
  '0009_older_names': statements(
    // Names in events up to this position of the log may lack claims (`infra/database/older-names.ts`).
    'CREATE TABLE service.older_names (one boolean PRIMARY KEY DEFAULT true CHECK (one), position bigint NOT NULL)',
  ),
  '0010_history': statements(
    // The versions of a read model's rows (`infra/read-models/history.ts`) cover every position from the first column
    // to the second, unless the tables have advanced without writing versions.
    'ALTER TABLE service.checkpoints ADD COLUMN history_from bigint, ADD COLUMN history_to bigint',
  ),
  '0011_newest_checkpoint': statements(
    // The newest checkpoint need not be the largest: a restored log continues under another origin, with fewer events.
    'CREATE INDEX log_checkpoints_signed ON credentials.log_checkpoints (signed_at, size)',
  ),
};

const MIGRATION_SCHEMA = 'migrations';
/** The table of Kysely's migrator for executed migrations. */
export const MIGRATION_TABLE = `${MIGRATION_SCHEMA}.kysely_migration`;

/** Runs every migration, without recording it. */
export async function runMigrations(db: AnyDatabase): Promise<void> {
  for (const migration of Object.values(migrations)) await migration.up(db);
}

/** Migrates the database to the latest version. @throws the error of the migration that failed */
export async function migrate(db: AnyDatabase): Promise<void> {
  if (await isUpToDate(db)) return;
  const migrator = new Migrator({
    db,
    provider: { getMigrations: () => Promise.resolve(migrations) },
    migrationTableSchema: MIGRATION_SCHEMA,
  });
  const { error } = await migrator.migrateToLatest();
  if (error) throw error;
}

/** @throws Error unless the database has the tables that this program needs */
export async function requireMigrated(db: AnyDatabase): Promise<void> {
  if (await isUpToDate(db)) return;
  throw new Error(
    'the database was made by another version of Signalbox, and this command changes nothing in it. `signalbox prepare` of this version brings it up to date.',
  );
}

/**
 * Whether every migration has run. Kysely's migrator first inspects every table of the database, which was the slowest step of a start without
 * migrations.
 */
export async function isUpToDate(db: AnyDatabase): Promise<boolean> {
  try {
    const { rows } = await sql<{ name: string }>`SELECT name FROM ${sql.table(MIGRATION_TABLE)}`.execute(db);
    const done = new Set(rows.map(({ name }) => name));
    // Unknown migrations come from a newer version; the migrator then refuses to continue.
    return done.size === Object.keys(migrations).length && Object.keys(migrations).every((name) => done.has(name));
  } catch (error) {
    // No such table: nothing has been migrated yet.
    if ((error as { code?: string }).code === '42P01') return false;
    throw error;
  }
}
