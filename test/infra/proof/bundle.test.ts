/** Signed exports and the log itself, altered in every way that one can think of: each is found and named. */
import { generateKeyPairSync } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../../infra/config.ts';
import { type Core, openCore } from '../../../infra/core.ts';
import { leafHash, leafText } from '../../../infra/event-log/leaf.ts';
import { currentNote } from '../../../infra/log-index/current.ts';
import { createLogger } from '../../../infra/logging.ts';
import { openPostgresLog } from '../../../infra/postgres/event-log.ts';
import { verifyBundle } from '../../../infra/proof/bundle.ts';
import { publicKeyOf, signNote, verifierKeyText } from '../../../infra/proof/notes.ts';
import { verifyLog } from '../../../infra/proof/verify-log.ts';
import { dataExported } from '../../../shared/events/admin/export.ts';
import type { LoggedEvent } from '../../../shared/ports/event-log.ts';
import { runHere as run } from '../../support/command.ts';
import { closing } from '../../support/fixture.ts';
import { leafOf, openCheckpoint, treeHashOf } from '../../support/log-proof.ts';
import { runCommand } from '../../support/service-process.ts';
import { dataDirectory } from '../../support/template.ts';
import { testOrigin } from '../../support/world.ts';

const log = createLogger('silent');
const openAt = (dataDir: string): Promise<Core> => openCore(readConfig({ DATA_DIR: dataDir }), log);

/** Appends events until the log has this many. */
async function fill({ eventLog, store }: Core, size: number): Promise<void> {
  const missing = size - (await eventLog.head());
  const drafts = Array.from({ length: missing }, (_, rowCount) =>
    dataExported.draft({ what: 'agents "ä"', format: 'csv', row_count: rowCount }),
  );
  await store.append('exports', await store.prepare(drafts, testOrigin), 'any');
}

/** What tests of `verify` alter; each finds it as it was. */
const ALTERED = ['log.origins', 'log.events', 'log.entries', 'credentials.log_checkpoints'];

/** Sizes of the checkpoints but the last one. */
const SIGNED = [40, 80];

describe('signed exports', function () {
  this.timeout(180_000);
  let dataDir: string;
  let folder: string;
  let bundle: string;
  before(async () => {
    dataDir = await dataDirectory();
    folder = await mkdtemp(join(tmpdir(), 'sbx-bundle-'));
    bundle = join(folder, 'bundle');
    const core = await openAt(dataDir);
    for (const size of SIGNED) {
      await fill(core, size);
      await currentNote(core);
    }
    await core.close();
  });
  after(async () => {
    await rm(folder, { recursive: true, force: true });
    await rm(dataDir, { recursive: true, force: true });
  });

  it('are written by the command line with all events, leaves, checkpoints and the key', async () => {
    const { code, err } = await runCommand(['export-events', '--signed', '--output', bundle], { DATA_DIR: dataDir });
    expect(code, err).to.equal(0);
    expect((await readdir(bundle)).sort()).to.deep.equal([
      'checkpoint',
      'checkpoints',
      'events.jsonl',
      'key.pub',
      'leaves',
    ]);
    const lines = (await readFile(join(bundle, 'events.jsonl'), 'utf8')).split('\n');
    expect(lines.pop()).to.equal('');
    const leaves = await readFile(join(bundle, 'leaves'));
    const hashes = lines.map((line) => leafOf(line));
    expect(leaves).to.deep.equal(Buffer.concat(hashes));
    const checkpoint = await readFile(join(bundle, 'checkpoint'), 'utf8');
    const { size, root } = openCheckpoint(checkpoint, await readFile(join(bundle, 'key.pub'), 'utf8'));
    expect(size).to.equal(lines.length);
    expect(root).to.deep.equal(treeHashOf(hashes));
    expect(await readFile(join(bundle, 'checkpoints'), 'utf8')).to.match(/^(signalbox\/\w+\n\d+\n.*\n\n— .*\n){2,}$/);
    expect(err).to.match(/\d+ events under a checkpoint of signalbox\//);
  });

  it('are valid offline, with the key in the bundle and with a given key', async () => {
    const plain = await runCommand(['verify', '--bundle', bundle]);
    expect(plain.code, plain.err).to.equal(0);
    expect(plain.out).to.match(/^Unchanged: \d+ events, \d+ checkpoints of signalbox\//);
    expect(plain.out)
      .to.include('The key came from the bundle itself')
      .and.to.include(await keyOf(bundle));
    const key = join(folder, 'trusted.pub');
    await writeFile(key, `${await keyOf(bundle)}\n`);
    const given = await run(['verify', '--bundle', bundle, '--key', key]);
    expect(given.code, given.err).to.equal(0);
    expect(given.out).not.to.include('came from the bundle');
  });

  const keyOf = (at: string) => readFile(join(at, 'key.pub'), 'utf8');

  /** What is found in a bundle after a change. */
  async function findings(change: (at: string) => Promise<unknown>, trusted?: string): Promise<readonly string[]> {
    const altered = await mkdtemp(join(folder, 'altered-'));
    await cp(bundle, altered, { recursive: true });
    await change(altered);
    return (await verifyBundle(altered, trusted)).findings;
  }
  const changeLines = (change: (lines: string[]) => string[]) => async (at: string) => {
    const file = join(at, 'events.jsonl');
    const lines = (await readFile(file, 'utf8')).split('\n').slice(0, -1);
    await writeFile(
      file,
      change(lines)
        .map((line) => `${line}\n`)
        .join(''),
    );
  };
  /** The leaves that follow from the lines. */
  const makeLeaves = async (at: string) => {
    const lines = (await readFile(join(at, 'events.jsonl'), 'utf8')).split('\n').slice(0, -1);
    await writeFile(join(at, 'leaves'), Buffer.concat(lines.map((line) => leafHash(line))));
    return lines.map((line) => leafOf(line));
  };
  const first = (n: number) => new RegExp(`^Event ${n} is the first that is not what its leaf says`);
  const reordered = (line: string) => {
    const { data, ...rest } = JSON.parse(line);
    return JSON.stringify({ ...rest, data });
  };

  const ways: Readonly<Record<string, [change: (lines: string[]) => string[], named: RegExp]>> = {
    'one character of an event': [(lines) => lines.with(50, (lines[50] as string).replace(/"/, "'")), first(50)],
    'an event that was removed': [(lines) => lines.toSpliced(50, 1), first(50)],
    'two events that were swapped': [
      (lines) => lines.with(50, lines[51] as string).with(51, lines[50] as string),
      first(50),
    ],
    'another order of keys': [(lines) => lines.with(50, reordered(lines[50] as string)), first(50)],
    'a line that is there twice': [(lines) => lines.toSpliced(50, 0, lines[49] as string), first(50)],
    'a blank at the end of a line': [(lines) => lines.with(50, `${lines[50]} `), first(50)],
    'the last events, which are missing': [(lines) => lines.slice(0, 70), /^Events 70 to \d+ are missing\.$/],
    'the last event, which is missing': [(lines) => lines.slice(0, -1), /^Event \d+ is missing\.$/],
    'an event after the end': [(lines) => [...lines, lines[3] as string], /^Event \d+ was put in after the end/],
  };
  for (const [way, [change, named]] of Object.entries(ways)) {
    it(`name ${way}`, async () => {
      const found = await findings(changeLines(change));
      expect(
        found.some((finding) => named.test(finding)),
        found.join('\n'),
      ).to.equal(true);
    });
  }

  it('name the first events that were rewritten with their leaves, as precisely as checkpoints allow', async () => {
    const rewritten = (from: number) => async (at: string) => {
      await changeLines((lines) => lines.map((line, n) => (n < from ? line : line.replace('"meta"', '"meta "'))))(at);
      await makeLeaves(at);
    };
    const [late] = await findings(rewritten(50));
    expect(late).to.equal(
      'The tree is not that of the checkpoint of 80 events: of the events 40 to 79, some or all were rewritten. The one of 40 events holds.',
    );
    const [early] = await findings(rewritten(0));
    expect(early).to.equal(
      'The tree is not that of the checkpoint of 40 events: of the events 0 to 39, some or all were rewritten. No earlier one holds.',
    );
  });

  it('name events that are missing together with their leaves', async () => {
    const found = await findings(async (at) => {
      await changeLines((lines) => lines.slice(0, 70))(at);
      await makeLeaves(at);
    });
    expect(found.join('\n')).to.match(/Events 70 to \d+ are missing\./);
  });

  it('name a leaf that was altered without its event', async () => {
    const found = await findings(async (at) => {
      const leaves = await readFile(join(at, 'leaves'));
      leaves[32 * 50] = (leaves[32 * 50] as number) ^ 1;
      await writeFile(join(at, 'leaves'), leaves);
    });
    expect(found).to.deep.equal(['The leaf of event 50 was altered: the events themselves match the checkpoints.']);
  });

  it('name missing and extra leaves', async () => {
    const changed = (change: (leaves: Buffer) => Buffer) => async (at: string) =>
      writeFile(join(at, 'leaves'), change(await readFile(join(at, 'leaves'))));
    expect(await findings(changed((leaves) => leaves.subarray(0, 32 * 50 + 7)))).to.deep.equal([
      'The leaf of event 50 is missing in the file leaves.',
    ]);
    const more = await findings(changed((leaves) => Buffer.concat([leaves, leaves.subarray(0, 32)])));
    expect(more).to.have.length(1);
    expect(more[0]).to.include('has more leaves');
  });

  it('name an emptied key file, even if another key is given', async () => {
    const empty = (at: string) => writeFile(join(at, 'key.pub'), '');
    expect(await findings(empty, await keyOf(bundle))).to.deep.equal(['The file key.pub was altered: it is empty.']);
  });

  it('detect an earlier signed state that lacks events of later checkpoints', async () => {
    const found = await findings(async (at) => {
      await changeLines((lines) => lines.slice(0, 40))(at);
      await makeLeaves(at);
      const notes = (await readFile(join(at, 'checkpoints'), 'utf8')).match(/signalbox\/\w+\n\d+\n.*\n\n— .*\n/g) ?? [];
      await writeFile(join(at, 'checkpoint'), notes.find((note) => note.split('\n')[1] === '40') as string);
    });
    expect(found.join('\n')).to.match(/^Events 40 to 79 are missing\.$/);
  });

  it('detect a checkpoint of another key by its signature', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const forged = async (at: string) => {
      await changeLines((lines) => lines.with(50, (lines[50] as string).replace(/"/, "'")))(at);
      const leaves = await makeLeaves(at);
      const [origin = ''] = (await readFile(join(at, 'checkpoint'), 'utf8')).split('\n');
      const note = signNote({ origin, size: leaves.length, root: treeHashOf(leaves) }, privateKey);
      await writeFile(join(at, 'checkpoint'), note);
      await writeFile(join(at, 'checkpoints'), note);
      return verifierKeyText({ name: origin, publicKey: publicKeyOf(privateKey) });
    };
    expect((await findings(forged)).join('\n')).to.match(/is not signed by a known key .*signature is wrong/);
    // With its key in the bundle it looks unchanged: only a key from elsewhere tells.
    const withKey = async (at: string) => writeFile(join(at, 'key.pub'), await forged(at));
    expect(await findings(withKey)).to.deep.equal([]);
    expect((await findings(withKey, await keyOf(bundle))).join('\n')).to.match(
      /^The checkpoint is not signed by the given key/,
    );
  });

  it('detect one flipped byte in any file', async () => {
    for (const name of ['events.jsonl', 'leaves', 'checkpoint', 'checkpoints', 'key.pub']) {
      const { length } = await readFile(join(bundle, name));
      const places = new Set([0, 1, 20, 77, length >> 1, length - 2, length - 1]);
      for (const at of [...places].filter((place) => place < length)) {
        for (const mask of [1, 7, 0x80]) {
          const found = await findings(async (altered) => {
            const bytes = await readFile(join(altered, name));
            bytes[at] = (bytes[at] as number) ^ mask;
            await writeFile(join(altered, name), bytes);
          });
          expect(found.length, `${name}, byte ${at}, ${mask}`).to.be.above(0);
        }
      }
    }
  });

  it('have the exit codes 3 if altered, 1 if a file is missing, and 2 for configuration errors', async () => {
    const altered = join(folder, 'for-codes');
    await cp(bundle, altered, { recursive: true });
    await changeLines((lines) => lines.toSpliced(50, 1))(altered);
    for (const name of await readdir(bundle)) {
      const missing = await mkdtemp(join(folder, 'missing-'));
      await cp(bundle, missing, { recursive: true });
      await rm(join(missing, name));
      const error = await verifyBundle(missing, undefined).catch((reason: Error) => reason);
      expect(error, name).to.be.instanceOf(Error).with.property('message').that.includes(`has no file ${name}.`);
    }
    const setting = { LOG_SIGNING_KEY: 'x', LOG_ORIGIN: 'a b', DATA_DIR: dataDir };
    for (const [args, env, expected, says] of [
      [['--bundle', altered], {}, 3, /^ALTERED: Event 50 is the first/m],
      [['--bundle', join(folder, 'nowhere')], {}, 1, /nowhere/],
      [['--bundle', bundle, '--key', join(bundle, 'leaves')], {}, 1, /--key holds no verifier key/],
      [['--bundle', bundle, '--key', join(folder, 'no.pub')], {}, 1, /The file given with --key cannot be read/],
      [['--key', 'x'], {}, 1, /--key is for --bundle/],
      [[], { PORT: 'x' }, 2, /PORT: "x" is invalid/],
      [[], { DATA_DIR: join(folder, 'nothing') }, 1, /there is no database in/],
      [[], setting, 2, /LOG_SIGNING_KEY: its value is invalid: must be an Ed25519 private key/],
      [[], setting, 2, /LOG_ORIGIN: "a b" is invalid/],
    ] as const) {
      const { code, out, err } = await run(['verify', ...args], env);
      expect(code, args.join(' ')).to.equal(expected);
      expect(out + err).to.match(says);
    }
  });

  it('are refused with a non-empty folder and with filters', async () => {
    for (const [args, says] of [
      [['--output', bundle], /is not empty/],
      [['--output', join(folder, 'x'), '--type', 'T'], /use it without --after/],
      [[], /--output FOLDER/],
    ] as const) {
      const { code, err } = await run(['export-events', '--signed', ...args], { DATA_DIR: dataDir });
      expect([code, err]).to.deep.equal([1, err]);
      expect(err).to.match(says);
    }
  });
});

describe('signalbox verify', function () {
  this.timeout(180_000);
  let core: Core;
  let dataDir: string;
  before(async () => {
    dataDir = await dataDirectory();
    core = await openAt(dataDir);
    for (const size of [30, 60]) {
      await fill(core, size);
      await currentNote(core);
    }
    for (const table of ['events', 'origins'])
      await core.database.pool.query(`ALTER TABLE log.${table} DISABLE TRIGGER USER`);
    for (const [n, table] of ALTERED.entries())
      await core.database.pool.query(`CREATE TABLE public.kept_${n} AS TABLE ${table}`);
  });
  afterEach(async () => {
    for (const [n, table] of ALTERED.entries()) {
      await core.database.pool.query(`DELETE FROM ${table}`);
      await core.database.pool.query(`INSERT INTO ${table} TABLE public.kept_${n}`);
    }
  });
  after(async () => {
    await core.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  const verify = () => verifyLog(core.database, core.eventLog, core.config);
  /** A change of the table behind the back of the service. */
  const alter = async (...statements: string[]) => {
    for (const statement of statements) await core.database.pool.query(statement);
  };

  it('confirms an intact log, from the command line too', async () => {
    const { findings, size, checkpoints } = await verify();
    expect(findings).to.deep.equal([]);
    expect(checkpoints).to.equal(2);
    const { code, out } = await run(['verify'], { DATA_DIR: dataDir });
    expect(code).to.equal(0);
    expect(out).to.include(`Unchanged: ${size} events, 2 checkpoints of signalbox/`);
  });

  it('names an event whose data was changed', async () => {
    await alter(`UPDATE log.events SET data = '{"x":1}' WHERE position = 41`);
    const { findings } = await verify();
    expect(findings).to.have.length(1);
    expect(findings[0]).to.match(/^Event 40 is the first/);
    const { code, out } = await run(['verify'], { DATA_DIR: dataDir });
    expect(code).to.equal(3);
    expect(out).to.match(/^ALTERED: Event 40 is/);
  });

  it('names an event whose metadata was changed, whether its own or what it has in common with others', async () => {
    const first = async (...statements: string[]) => {
      await alter(...statements);
      // As in another process, which has not read the origins yet.
      await using unread = closing(openPostgresLog({ database: core.database, log }));
      return (await verifyLog(core.database, unread, core.config)).findings[0];
    };
    const columns = { number: 'number + 1', at: 'at + 1', cause: 'gen_random_uuid()', meta: `'{"rest":7}'` };
    for (const [column, value] of Object.entries(columns)) {
      const position = 45 - Object.keys(columns).indexOf(column);
      expect(await first(`UPDATE log.events SET ${column} = ${value} WHERE position = ${position}`)).to.match(
        new RegExp(`^Event ${position - 1} is the first`),
      );
    }
    // It stands for all events of a caller.
    const ofEvent = (position: number) => `(SELECT origin FROM log.events WHERE position = ${position})`;
    const other = `(SELECT id FROM log.origins WHERE id <> ${ofEvent(41)} LIMIT 1)`;
    expect(await first(`UPDATE log.events SET origin = ${other} WHERE position = 41`)).to.match(
      /^Event 40 is the first/,
    );
    const { rows } = await core.database.pool.query(
      'SELECT min(position) - 1 AS number FROM log.events WHERE origin = $1',
      [(await core.database.pool.query(`SELECT origin FROM log.events WHERE position = 40`)).rows[0].origin],
    );
    expect(
      await first(
        `UPDATE log.origins SET meta = (meta::jsonb || '{"userAgent": "another"}')::json WHERE id = ${ofEvent(40)}`,
      ),
    ).to.match(new RegExp(`^Event ${rows[0].number} is the first`));
  });

  it('names a removed event, even the last one', async () => {
    await alter('DELETE FROM log.events WHERE position = 41');
    expect((await verify()).findings[0]).to.match(/^Event 40 is the first/);
    await alter('DELETE FROM log.events WHERE position > 50');
    expect((await verify()).findings.join('\n')).to.match(/Events 49 to \d+ are missing/);
  });

  it('names events that were rewritten with their leaves, as precisely as checkpoints allow', async () => {
    await alter(`UPDATE log.events SET data = '{"x":1}' WHERE position = 41`);
    const events: LoggedEvent[] = [];
    for await (const page of core.eventLog.readAll({ from: 40, limit: 1 })) events.push(...page);
    await core.database.pool.query('UPDATE log.entries SET leaf = $1 WHERE number = 40', [
      leafHash(leafText(events[0] as LoggedEvent)),
    ]);
    const { findings } = await verify();
    expect(findings).to.have.length(1);
    expect(findings[0]).to.match(/of the events 30 to \d+, some or all were rewritten\. The one of 30 events holds\.$/);
  });

  it('names a checkpoint with an invalid signature', async () => {
    await core.database.pool.query(
      `UPDATE credentials.log_checkpoints SET note = replace(note, E'\\n30\\n', E'\\n31\\n') WHERE size = 30`,
    );
    expect((await verify()).findings).to.deep.equal([
      `The checkpoint of 31 events is not signed by a known key of ${(await verify()).origin}: its signature is wrong, or the key is another one.`,
    ]);
  });
});
