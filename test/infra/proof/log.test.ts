/** The tree over whole logs: the same on every kind of event log and after a copy; through restarts; signed. */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Config } from '../../../infra/config.ts';
import { createPersonKeys } from '../../../infra/credentials/person-keys.ts';
import type { Database } from '../../../infra/database/database.ts';
import { openEventStoreLog } from '../../../infra/eventstore/event-log.ts';
import { Following } from '../../../infra/following/following.ts';
import { createLogIndex } from '../../../infra/log-index/log-index.ts';
import { createLogger } from '../../../infra/logging.ts';
import { openPostgresLog } from '../../../infra/postgres/event-log.ts';
import { allNotes, latestNote, signTree } from '../../../infra/proof/checkpoints.ts';
import { type Keeper, startKeeper } from '../../../infra/proof/keeper.ts';
import { knownKeys, openSigner, type Signer } from '../../../infra/proof/keys.ts';
import { repairTree } from '../../../infra/proof/losses.ts';
import { parseNote, signNote, verifierKeyText } from '../../../infra/proof/notes.ts';
import { createProofs } from '../../../infra/proof/proofs.ts';
import { leavesOf, rootAt, treeSize } from '../../../infra/proof/tree.ts';
import { verifyLog } from '../../../infra/proof/verify-log.ts';
import { createCounters } from '../../../infra/stores/counters.ts';
import { createBackups, restoreBackup } from '../../../infra/tools/backup.ts';
import { copyLog } from '../../../infra/tools/copy-log.ts';
import { createEventStore } from '../../../shared/event-store.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import type { EventLog, LoggedEvent, NewEvent } from '../../../shared/ports/event-log.ts';
import { openBackup } from '../../support/backups.ts';
import { startEventStoreStandIn } from '../../support/eventstore-stand-in.ts';
import { closing, fixture, fixtureForEach } from '../../support/fixture.ts';
import { writeHistory } from '../../support/history.ts';
import { failureOf } from '../../support/kit.ts';
import { isContinued, isIncluded, leafOfEvent, openCheckpoint, treeHashOf } from '../../support/log-proof.ts';
import { needsServer } from '../../support/needs.ts';
import { freshPrefix } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { databaseOnServer, embeddedDatabase } from '../../support/world.ts';

const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');
const SETTINGS = { logSigningKey: undefined, logOrigin: undefined };
const EVENTS = 700;

interface Place {
  readonly name: string;
  readonly database: Database;
  readonly eventLog: EventLog;
  close(): Promise<void>;
}

/** Makes a log; undefined where its server is missing. */
type Make = (context: Mocha.Context) => Promise<Place>;

const onDatabase = (name: string, { database, close }: { database: Database; close(): Promise<void> }): Place => {
  const eventLog = openPostgresLog({ database, log });
  return {
    ...{ name, database, eventLog },
    async close() {
      await eventLog.close();
      await close();
    },
  };
};

async function onEventStore(name: string, url: string, stop?: () => Promise<void>): Promise<Place> {
  const { database, close } = process.env.TEST_DATABASE_URL ? await databaseOnServer() : await embeddedDatabase();
  const eventLog = await openEventStoreLog({ url, prefix: freshPrefix(), log });
  return {
    ...{ name, database, eventLog },
    async close() {
      await eventLog.close();
      await close();
      await stop?.();
    },
  };
}

const ENGINES: Readonly<Record<string, Make>> = {
  PGlite: async () => onDatabase('PGlite', await embeddedDatabase()),
  async PostgreSQL(context) {
    needsServer('TEST_DATABASE_URL', context);
    return onDatabase('PostgreSQL', await databaseOnServer());
  },
  async 'stand-in of EventStoreDB'() {
    const standIn = await startEventStoreStandIn();
    return onEventStore('stand-in of EventStoreDB', standIn.url, () => standIn.stop());
  },
  EventStoreDB: async (context) => onEventStore('EventStoreDB', needsServer('TEST_EVENTSTORE_URL', context)),
};

interface Kept {
  readonly keeper: Keeper;
  close(): Promise<void>;
}

function keep({ database, eventLog }: Place, { signs = false } = {}): Kept {
  const following = new Following({ database, eventLog, log });
  // As on an event store, which accepts an id twice.
  const config = { ...SETTINGS, eventStoreUrl: 'esdb://none' };
  const keeper = startKeeper({ database, eventLog, following, config, log, process: randomUUID(), signs });
  return {
    keeper,
    async close() {
      await keeper.close();
      await following.close();
    },
  };
}

const indexOf = ({ database, eventLog }: Place) => createLogIndex({ database, eventLog, timeoutMs: 20_000 });

/** Lets the tree catch up with the log. */
async function grow(place: Place): Promise<void> {
  const { close } = keep(place);
  await indexOf(place).settled();
  await close();
}

async function leaves({ database: { pool } }: Place): Promise<Buffer[]> {
  const pages: Buffer[] = [];
  for await (const page of leavesOf(pool, await treeSize(pool))) pages.push(page);
  const all = Buffer.concat(pages);
  return Array.from({ length: all.length / 32 }, (_, n) => all.subarray(32 * n, 32 * n + 32));
}

async function eventsOf({ eventLog }: Place): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for await (const page of eventLog.readAll()) events.push(...page);
  return events;
}

async function fill({ eventLog, database }: Place, events: number): Promise<void> {
  const counters = createCounters(database.pool);
  const store = createEventStore({ log: eventLog, catalogue, counters, keys: createPersonKeys(database) });
  await writeHistory(store, { events });
}

const newEvent = (n: number): NewEvent => ({
  id: randomUUID(),
  type: 'Tested',
  data: { n, ä: [1.5e-7, -0, '€\n', { z: null, a: true }] },
  meta: { at: n, actor: { type: 'user', id: 7, name: 'ann' }, correlationId: 'run', causationId: null },
});

describe('tree over a log', function () {
  this.timeout(120_000);
  let source: Place;
  before(async () => {
    source = onDatabase('source', await embeddedDatabase());
    await fill(source, EVENTS);
    await source.eventLog.append('odd', [newEvent(1)], 'none');
    await grow(source);
  });
  after(() => source?.close());

  it('has the leaf of each event, as computed by an independent verifier', async () => {
    const events = await eventsOf(source);
    const expected = events.map((event) => leafOfEvent({ ...event }));
    expect(await leaves(source)).to.deep.equal(expected);
    const size = events.length;
    expect(await rootAt(source.database.pool, size)).to.deep.equal(treeHashOf(expected));
    const proofs = createProofs(source.database, SETTINGS);
    for (const [index, at] of [
      [0, 1],
      [0, size],
      [16, 17],
      [15, size - 1],
      [255, 256],
      [256, 600],
      [size - 1, size],
    ] as const) {
      const { leaf, path } = await proofs.inclusion(index, at);
      expect(leaf).to.deep.equal(expected[index]);
      expect(isIncluded({ leaf, index, size: at, path }, treeHashOf(expected.slice(0, at))), `${index}/${at}`).to.equal(
        true,
      );
    }
    for (const [from, to] of [
      [1, 2],
      [1, size],
      [16, 256],
      [255, 257],
      [256, size],
      [511, 512],
      [size, size],
    ] as const) {
      const first = { size: from, root: treeHashOf(expected.slice(0, from)) };
      const second = { size: to, root: treeHashOf(expected.slice(0, to)) };
      expect(isContinued(first, second, await proofs.consistency(from, to)), `${from} to ${to}`).to.equal(true);
    }
  });

  for (const [name, make] of Object.entries(ENGINES)) {
    describe(name, () => {
      const place = fixture(function () {
        return make(this);
      });

      it('is the same for a copy of the log', async () => {
        const target = place;
        await copyLog(
          { name: 'source', log: source.eventLog, database: undefined },
          { name, log: target.eventLog, database: undefined },
        );
        await grow(target);
        expect(await leaves(target)).to.deep.equal(await leaves(source));
      });

      it('resumes where it was, and includes an event as soon as it is appended', async () => {
        const target = place;
        const index = indexOf(target);
        for (let n = 0; n < 3; n++) {
          const kept = keep(target);
          const events = [newEvent(n), newEvent(n + 1)];
          await target.eventLog.append('more', events, 'any');
          await index.settled();
          const found = await index.find(events[1]?.id as string);
          expect(found).to.deep.include({
            number: (await treeSize(target.database.pool)) - 1,
            stream: 'more',
            at: n + 1,
          });
          await kept.close();
        }
        const expected = (await eventsOf(target)).map((event) => leafOfEvent({ ...event }));
        expect(await leaves(target)).to.deep.equal(expected);
      });

      it('is intact, and reports this', async () => {
        const { database, eventLog } = place;
        const signer = (await openSigner(database.pool, SETTINGS, true)) as Signer;
        const size = await signTree(database.pool, SETTINGS, signer);
        const { findings, ...verified } = await verifyLog(database, eventLog, SETTINGS);
        expect(findings).to.deep.equal([]);
        expect(verified).to.include({ size, checkpoints: 1, origin: signer.origin });
        expect(verified.root).to.deep.equal(await rootAt(database.pool, size));
      });
    });
  }

  it('contains each event once with two processes', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using place = closing(await (ENGINES.PostgreSQL as Make)(this));
    const both = [keep(place), keep(place)];
    for (let n = 0; n < 40; n++) await place.eventLog.append(`s-${n % 3}`, [newEvent(n)], 'any');
    await both[0]?.close();
    for (let n = 0; n < 40; n++) await place.eventLog.append(`s-${n % 3}`, [newEvent(n)], 'any');
    await indexOf(place).settled();
    await both[1]?.close();
    const expected = (await eventsOf(place)).map((event) => leafOfEvent({ ...event }));
    expect(await leaves(place)).to.deep.equal(expected);
  });

  it('reports an id that occurs in two streams of an event store', async () => {
    await using place = closing(await (ENGINES['stand-in of EventStoreDB'] as Make)({} as Mocha.Context));
    const event = newEvent(1);
    await place.eventLog.append('one', [event], 'none');
    await place.eventLog.append('two', [event], 'none');
    await grow(place);
    const { findings, remarks } = await verifyLog(place.database, place.eventLog, SETTINGS);
    expect(findings).to.deep.equal([]);
    expect(remarks).to.deep.equal([`Events 0 and 1 have the same id, ${event.id}: a program has used it twice.`]);
  });
});

describe('checkpoints', function () {
  this.timeout(60_000);
  const place = fixtureForEach(async () => onDatabase('PGlite', await embeddedDatabase()));

  const notes = async () => {
    const all: string[] = [];
    for await (const note of allNotes(place.database.pool)) all.push(note.text);
    return all;
  };
  const append = (n: number) => place.eventLog.append('s', [newEvent(n)], 'any');
  const signer = async () => (await openSigner(place.database.pool, SETTINGS, true)) as Signer;

  it('are signed at the start and at the end of the process, each for the current tree', async () => {
    await append(1);
    const kept = keep(place, { signs: true });
    await until('a checkpoint at the start', async () => (await notes()).length === 1);
    await append(2);
    await indexOf(place).settled();
    await kept.close();
    const keys = (await knownKeys(place.database.pool)).map(verifierKeyText);
    expect(keys).to.have.length(1);
    const opened = (await notes()).map((text) => openCheckpoint(text, keys[0] as string));
    const all = await leaves(place);
    expect(opened.map(({ size }) => size)).to.deep.equal([1, 2]);
    for (const { size, root } of opened) expect(root).to.deep.equal(treeHashOf(all.slice(0, size)));
    // Nothing has been added: nothing is signed.
    await keep(place, { signs: true }).close();
    const again = keep(place, { signs: true });
    await indexOf(place).settled();
    await again.close();
    expect(await notes()).to.have.length(2);
    expect((await eventsOf(place)).map(({ type }) => type)).to.deep.equal(['Tested', 'Tested']);
  });

  it('of one size are signed once, however many processes sign', async () => {
    await append(1);
    await grow(place);
    const own = await signer();
    await Promise.all(Array.from({ length: 8 }, () => signTree(place.database.pool, SETTINGS, own)));
    expect(await notes()).to.have.length(1);
  });

  it('are signed with one key by processes that start together', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, signer));
    expect(new Set(all.map(({ verifierKey }) => verifierKeyText(verifierKey))).size).to.equal(1);
    expect(await knownKeys(place.database.pool)).to.have.length(1);
  });

  it('change their origin if the log has lost events; earlier keys are kept, and the log is valid', async () => {
    const { pool } = place.database;
    for (let n = 0; n < 3; n++) await append(n);
    await grow(place);
    const first = await signer();
    await signTree(pool, SETTINGS, first);
    // As in a database whose log was restored to an earlier state.
    await pool.query(
      "INSERT INTO credentials.log_checkpoints SELECT origin, 9, replace(note, E'\\n3\\n', E'\\n9\\n'), 1 FROM credentials.log_checkpoints",
    );
    await signTree(pool, SETTINGS, first);
    const second = await signer();
    expect(second.origin).to.equal(`${first.origin}/2`);
    expect((await latestNote(pool, second.origin))?.size).to.equal(3);
    expect((await knownKeys(pool)).map(({ name, kept }) => ({ name, kept }))).to.deep.equal([
      { name: second.origin, kept: null },
      { name: first.origin, kept: 3 },
    ]);
    await append(4);
    await grow(place);
    await signTree(pool, SETTINGS, second);
    const [checkpoint] = [await latestNote(pool, second.origin)];
    expect(openCheckpoint(checkpoint?.text as string, verifierKeyText(second.verifierKey)).size).to.equal(4);
  });

  it('are no longer signed if the tree has changed', async () => {
    const { pool } = place.database;
    for (let n = 0; n < 3; n++) await append(n);
    await grow(place);
    await signTree(pool, SETTINGS, await signer());
    await append(3);
    await grow(place);
    await pool.query("UPDATE log.entries SET leaf = decode(repeat('00', 32), 'hex') WHERE number = 1");
    const error = await failureOf(signTree(pool, SETTINGS, await signer()));
    expect(error).to.match(/not the one of the checkpoint with size 3.*signalbox verify/);
    expect(await notes()).to.have.length(1);
  });

  it('use a configured key and origin', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const settings = {
      logSigningKey: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
      logOrigin: 'example.com/log',
    };
    const before = await signer();
    const own = (await openSigner(place.database.pool, settings, true)) as Signer;
    expect(own.origin).to.equal('example.com/log');
    expect(own.privateKey.equals(privateKey)).to.equal(true);
    const names = (await knownKeys(place.database.pool)).map(({ name }) => name);
    expect(names).to.have.members([before.origin, 'example.com/log']);
  });
});

describe('moved and restored logs', function () {
  this.timeout(120_000);
  const undo: (() => Promise<unknown>)[] = [];
  let source: Place;
  let earlier: Signer;
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sbx-proof-'));
    undo.push(() => rm(folder, { recursive: true, force: true }));
    source = await empty();
    for (let n = 0; n < 20; n++) await append(source, n);
    earlier = await sign(source);
  });
  afterEach(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });

  async function empty(): Promise<Place> {
    const place = onDatabase('PGlite', await embeddedDatabase());
    undo.push(() => place.close());
    return place;
  }
  const append = ({ eventLog }: Place, n: number) => eventLog.append('s', [newEvent(n)], 'any');
  async function sign(place: Place): Promise<Signer> {
    await grow(place);
    const { pool } = place.database;
    await signTree(pool, SETTINGS, (await openSigner(pool, SETTINGS, true)) as Signer);
    return (await openSigner(pool, SETTINGS, true)) as Signer;
  }
  const textsOf = async ({ database: { pool } }: Place) => {
    const texts: string[] = [];
    for await (const { text } of allNotes(pool)) texts.push(text);
    return texts;
  };
  const verify = ({ database, eventLog }: Place) => verifyLog(database, eventLog, SETTINGS);

  it('keep key, name and checkpoints in a copy, and sign none again', async () => {
    const target = await empty();
    const { database: from } = source;
    await copyLog(
      { name: 'source', log: source.eventLog, database: from },
      { name: 'target', log: target.eventLog, database: target.database },
    );
    const after = await sign(target);
    expect(after.origin).to.equal(earlier.origin);
    expect(after.privateKey.equals(earlier.privateKey)).to.equal(true);
    expect(await textsOf(target)).to.deep.equal(await textsOf(source));
    expect((await verify(target)).findings).to.deep.equal([]);
  });

  /** What a service has that is started on a backup. */
  async function restored(newest?: string): Promise<{ place: Place; keepsOrigin: boolean | undefined }> {
    const place = await empty();
    const path = await backedUp();
    const options = newest === undefined ? {} : { newest: parseNote(newest) };
    return { place, keepsOrigin: await restoreInto(place, path, options) };
  }
  const backedUp = async () => {
    const config = { ...SETTINGS, dataDir: folder, backupPublicKeys: [], visibleTimeoutMs: 1 } as unknown as Config;
    return (await createBackups({ ...source, config }).create(9)).path;
  };
  async function restoreInto(place: Place, path: string, options: Parameters<typeof restoreBackup>[2]) {
    const container = await openBackup(source.database, path);
    try {
      return (await restoreBackup(container, place, options)).keepsOrigin;
    } finally {
      await container.close();
    }
  }

  it('get another name from a backup; earlier checkpoints remain valid with their own key', async () => {
    const { place, keepsOrigin } = await restored();
    expect(keepsOrigin).to.equal(false);
    const after = await sign(place);
    expect(after.origin).to.equal(`${earlier.origin}/2`);
    const keys = (await knownKeys(place.database.pool)).map(verifierKeyText);
    expect(keys).to.deep.equal([verifierKeyText(after.verifierKey), verifierKeyText(earlier.verifierKey)]);
    const [old, fresh] = await textsOf(place);
    expect(openCheckpoint(old as string, keys[1] as string).size).to.equal(20);
    expect(openCheckpoint(fresh as string, keys[0] as string).size).to.equal(20);
    await append(place, 21);
    await sign(place);
    expect(await verify(place)).to.deep.include({ findings: [], remarks: [], checkpoints: 3 });
  });

  it('have all events in a backup while the tree is behind, and it says how many are signed', async () => {
    for (let n = 20; n < 25; n++) await append(source, n);
    const container = await openBackup(source.database, await backedUp());
    try {
      const { verified, events } = container;
      expect({ events, signed: verified.signed, findings: verified.findings }).to.deep.equal({
        events: 25,
        signed: 20,
        findings: [],
      });
      const place = await empty();
      await restoreBackup(container, place);
      expect(await eventsOf(place)).to.deep.equal(await eventsOf(source));
    } finally {
      await container.close();
    }
  });

  it('keep their name if the backup contains all events of the given last checkpoint', async () => {
    const [newest] = await textsOf(source);
    const { place, keepsOrigin } = await restored(newest);
    expect(keepsOrigin).to.equal(true);
    expect((await sign(place)).origin).to.equal(earlier.origin);
    expect(await textsOf(place)).to.deep.equal([newest]);
  });

  it('get another name if the given checkpoint has more events than the backup, or another log', async () => {
    const path = await backedUp();
    await append(source, 20);
    await sign(source);
    const later = (await textsOf(source)).at(-1) as string;
    const forged = signNote({ origin: earlier.origin, size: 20, root: Buffer.alloc(32) }, earlier.privateKey);
    for (const newest of [later, forged]) {
      const place = await empty();
      expect(await restoreInto(place, path, { newest: parseNote(newest) })).to.equal(false);
    }
  });

  it('have a stuck tree if restored in place, until it is repaired under another name', async () => {
    const { pool } = source.database;
    for (const statement of [
      'ALTER TABLE log.events DISABLE TRIGGER USER',
      'DELETE FROM log.events WHERE position > 15',
      'UPDATE log.head SET position = 15',
    ])
      await pool.query(statement);
    await source.eventLog.append('other', [newEvent(1), newEvent(2)], 'none');
    const kept = keep(source);
    const error = await until('it is stuck', () =>
      indexOf(source)
        .settled()
        .then(
          () => append(source, 3).then(() => undefined),
          (reason: Error) => reason.message,
        ),
    );
    expect(error).to.match(/stuck at position \d+: .*Run: signalbox verify/);
    await kept.close();
    expect((await verify(source)).findings.join()).to.match(/Event 15 is the first/);
    expect(await repairTree(source.database, source.eventLog)).to.deep.equal({ size: 15, removed: 5 });
    const after = await sign(source);
    expect(after.origin).to.equal(`${earlier.origin}/2`);
    const { findings, remarks } = await verify(source);
    expect(findings).to.deep.equal([]);
    expect(remarks).to.deep.equal([
      `Events under checkpoints of ${earlier.origin} were lost, from event 15 on; since then the log has another origin.`,
    ]);
    const expected = (await eventsOf(source)).map((event) => leafOfEvent({ ...event }));
    expect(await leaves(source)).to.deep.equal(expected);
    expect(await repairTree(source.database, source.eventLog)).to.deep.include({ removed: 0 });
  });
});
