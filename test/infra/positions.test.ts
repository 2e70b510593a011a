/** How far read models are, and what a process knows of it: changes, positions, checkpoints, freshness. Pure. */
import { expect } from 'chai';
import type { Database } from '../../infra/database/database.ts';
import { createTakeUp } from '../../infra/following/checkpoints.ts';
import { createLogger } from '../../infra/logging.ts';
import { createChangeTracker } from '../../infra/read-models/change-tracker.ts';
import { createFreshness } from '../../infra/read-models/freshness.ts';
import { Positions } from '../../infra/read-models/positions.ts';
import { AppError } from '../../shared/errors.ts';
import { boxesProjection as projection, put } from '../support/boxes.ts';
import { until } from '../support/until.ts';

describe('the tracker of changes', () => {
  it('tells workspaces and read models apart', () => {
    const changes = createChangeTracker();
    const before = changes.last('a_v1', 1);
    changes.record('a_v1', 1, 10);
    changes.record('a_v1', 2, 20);
    expect(changes.last('a_v1', 1)).to.not.equal(before);
    const [one, two, all] = [changes.last('a_v1', 1), changes.last('a_v1', 2), changes.last('a_v1', 'all')];
    expect(new Set([one, two]).size).to.equal(2);
    changes.record('a_v1', 2, 30);
    expect(changes.last('a_v1', 1)).to.equal(one);
    expect(changes.last('a_v1', 2)).to.not.equal(two);
    expect(changes.last('a_v1', 'all')).to.not.equal(all);
    const other = changes.last('b_v1', 2);
    changes.record('a_v1', 2, 40);
    expect(changes.last('b_v1', 2)).to.equal(other);
  });

  it('after a reset everything of the read model is another than before', () => {
    const changes = createChangeTracker();
    changes.record('a_v1', 1, 10);
    const before = changes.last('a_v1', 1);
    changes.reset('a_v1');
    const reset = changes.last('a_v1', 1);
    expect(reset).to.not.equal(before);
    changes.record('a_v1', 1, 10);
    expect([before, reset]).to.not.include(changes.last('a_v1', 1));
  });

  it('has a bound: a workspace that was forgotten counts as changed when it was forgotten, and no earlier', () => {
    const changes = createChangeTracker();
    for (let workspace = 1; workspace <= 10_000; workspace++) changes.record('a_v1', workspace, workspace);
    const never = changes.last('a_v1', 99_999);
    const [first, second] = [changes.last('a_v1', 1), changes.last('a_v1', 2)];
    // The first has changed again, so the second is the oldest.
    changes.record('a_v1', 1, 10_001);
    expect(changes.last('a_v1', 99_999)).to.equal(never);
    changes.record('a_v1', 10_001, 10_002);
    expect(changes.last('a_v1', 1)).to.not.equal(first);
    expect(changes.last('a_v1', 2), 'what is kept of the second').to.equal(second);
    expect(changes.last('a_v1', 99_999), 'one that was never seen counts as changed then').to.equal(second);
    expect(changes.last('a_v1', 3)).to.equal('0.3');
  });
});

describe('positions of read models', () => {
  const log = createLogger('silent');
  const open = (visibleTimeoutMs = 5_000, rows: object[] = []) => {
    const database = { pool: { query: async () => ({ rows }) } } as unknown as Database;
    return new Positions({ database, projections: [projection], log, visibleTimeoutMs });
  };

  it('grow, and never go back by themselves', () => {
    const positions = open();
    expect(positions.current('boxes_v1')).to.equal(0);
    positions.advance('boxes_v1', 5);
    positions.advance('boxes_v1', 3);
    expect(positions.current('boxes_v1')).to.equal(5);
  });

  it('of one that rests are where the reader is', () => {
    const positions = open();
    positions.advance('boxes_v1', 5);
    positions.raise(9);
    expect(positions.current('boxes_v1')).to.equal(5);
    positions.rest('boxes_v1', true);
    expect(positions.current('boxes_v1')).to.equal(9);
    positions.advance('boxes_v1', 12);
    expect(positions.current('boxes_v1')).to.equal(12);
    positions.rest('boxes_v1', false);
    positions.raise(20);
    expect(positions.current('boxes_v1')).to.equal(12);
  });

  it('a write is visible when those that listen to its events have reached it, in any of three ways', async () => {
    const ways: ((positions: Positions) => void)[] = [
      (positions) => positions.advance('boxes_v1', 7),
      (positions) => {
        positions.raise(7);
        positions.rest('boxes_v1', true);
      },
      (positions) => {
        positions.rest('boxes_v1', true);
        positions.raise(7);
      },
    ];
    for (const reach of ways) {
      const positions = open();
      let shown = false;
      const seen = positions.visible([put.type], 7).then(() => {
        shown = true;
      });
      positions.advance('boxes_v1', 6);
      positions.raise(6);
      await new Promise(setImmediate);
      expect(shown, 'too early').to.equal(false);
      reach(positions);
      await seen;
    }
    const positions = open();
    await positions.visible(['NobodyListens'], 7);
    positions.advance('boxes_v1', 7);
    await positions.visible([put.type], 7);
    expect(positions.schemasFor(put.type)).to.deep.equal(['boxes_v1']);
    expect(positions.schemasFor('NobodyListens')).to.deep.equal([]);
  });

  it('a write that is not shown soon enough is stored all the same, and the answer says so', async () => {
    const positions = open(20);
    positions.advance('boxes_v1', 3);
    const error = await positions.visible([put.type], 7).catch((reason: unknown) => reason);
    if (!(error instanceof AppError)) throw error;
    expect([error.status, error.extras.code, error.extras.body]).to.deep.equal([
      503,
      'READ_MODEL_BEHIND',
      { position: 7 },
    ]);
    expect(error.message).to.match(/position 7.* boxes_v1 /);
  });

  it('are read from the database, and again while somebody waits', async () => {
    const rows = [{ schema_name: 'boxes_v1', position: 4 }];
    const positions = open(5_000, rows);
    await positions.refresh();
    expect(positions.current('boxes_v1')).to.equal(4);
    positions.watch();
    positions.watch();
    const seen = positions.visible([put.type], 8);
    rows[0] = { schema_name: 'boxes_v1', position: 8 };
    await seen;
    await positions.close();
  });

  it('are heard of from other processes, and forgotten when that was interrupted', async () => {
    let heard: { heard(payload: string): void; interrupted(): void } | undefined;
    let stopped = false;
    const database = {
      pool: { query: async () => ({ rows: [] }) },
      listener: {
        listen(channel: string, what: typeof heard) {
          expect(channel).to.equal('signalbox_positions');
          heard = what;
          return () => {
            stopped = true;
          };
        },
      },
    } as unknown as Database;
    const positions = new Positions({ database, projections: [projection], log, visibleTimeoutMs: 5_000 });
    positions.watch();
    heard?.heard('boxes_v1:6');
    for (const odd of ['boxes_v1', '', ':9', 'boxes_v1:']) heard?.heard(odd);
    expect(positions.current('boxes_v1')).to.equal(6);
    heard?.interrupted();
    expect(positions.current('boxes_v1')).to.equal(0);
    await positions.close();
    expect(stopped).to.equal(true);
  });
});

describe('taking over checkpoints', () => {
  const parts = (kind: Database['kind']) => {
    const asked: string[][] = [];
    const query = async (_text: string, [names]: [string[]]) => {
      asked.push(names);
      const known = names.filter((name) => name !== 'missing');
      return { rows: known.map((name) => ({ name, position: name.length, generation: 1, stuckAt: null })) };
    };
    return { asked, takeUp: createTakeUp({ kind, pool: { query } } as unknown as Database, 'me') };
  };

  it('takes one statement for all of a moment on the embedded database, and fails only what is missing', async () => {
    const { asked, takeUp } = parts('embedded');
    const missing = takeUp('missing').catch((error: Error) => error.message);
    expect(await Promise.all([takeUp('a'), takeUp('bb')])).to.deep.equal([
      { position: 1, generation: 1, stuckAt: null },
      { position: 2, generation: 1, stuckAt: null },
    ]);
    expect(await missing).to.include('there is no checkpoint for missing');
    expect((await takeUp('ccc')).position).to.equal(3);
    expect(asked).to.deep.equal([['missing', 'a', 'bb'], ['ccc']]);
  });

  it('takes a statement for each on a server', async () => {
    const { asked, takeUp } = parts('server');
    const [one, two] = await Promise.all([takeUp('a'), takeUp('bb')]);
    expect([one.position, two.position]).to.deep.equal([1, 2]);
    expect(asked).to.deep.equal([['a'], ['bb']]);
  });
});

describe('freshness', () => {
  const parts = (database: object) => {
    const changes = createChangeTracker();
    const positions = new Positions({
      database: database as Database,
      projections: [projection],
      log: createLogger('silent'),
      visibleTimeoutMs: 5_000,
    });
    let credentials = 0;
    const freshness = createFreshness({
      database: database as Database,
      projections: [projection],
      changes,
      credentialChanges: () => credentials,
      positions,
    });
    return {
      freshness,
      changes,
      positions,
      changeCredentials: () => {
        credentials++;
      },
    };
  };

  it('of the one process of an embedded database is known without asking', async () => {
    const { freshness, changes, changeCredentials } = parts({ kind: 'embedded' });
    const before = freshness.stampNow(['boxes'], 1);
    expect(await freshness.stamp(['boxes'], 1)).to.equal(before);
    changes.record('boxes_v1', 1, 5);
    expect(freshness.stampNow(['boxes'], 1)).to.not.equal(before);
    const credentials = freshness.credentialsNow();
    changeCredentials();
    expect(freshness.credentialsNow()).to.not.equal(credentials);
    expect(await freshness.credentials()).to.equal(freshness.credentialsNow());
    expect(() => freshness.stampNow(['nothing'], 1)).to.throw('there is no projection nothing');
  });

  it('of one process waits for what was promised, unless that does not matter', async () => {
    const { freshness, changes, positions } = parts({ kind: 'embedded' });
    positions.gathers('boxes_v1', { end: () => undefined });
    // Not by asking: then the write would wait.
    const before = changes.last('boxes_v1', 1);
    await positions.promise([put.type], 5);
    expect(freshness.stampNow(['boxes'], 1), 'cannot be told without waiting').to.equal(undefined);
    expect(await freshness.stamp(['boxes'], 1, undefined, new Set([put.type]))).to.equal(before);
    const waiting = freshness.stamp(['boxes'], 1);
    changes.record('boxes_v1', 1, 5);
    positions.advance('boxes_v1', 5);
    expect(await waiting).to.not.equal(before);
    expect(freshness.stampNow(['boxes'], 1)).to.equal(await waiting);
  });

  it('on a server is asked of the database: once for those of a moment, and never by a query that began before', async () => {
    const answers: ((rows: object[]) => void)[] = [];
    const rows = (changed: number) => [{ positions: { boxes_v1: `1.${changed}` }, credentials: '7' }];
    const { freshness } = parts({
      kind: 'server',
      pool: { query: () => new Promise((resolve) => answers.push((found) => resolve({ rows: found }))) },
    });
    expect([freshness.stampNow(['boxes'], 1), freshness.credentialsNow()]).to.deep.equal([undefined, undefined]);
    const [one, two] = [freshness.stamp(['boxes'], 1), freshness.credentials()];
    await until('the first query has begun', () => answers.length === 1);
    const later = [freshness.stamp(['boxes'], 1), freshness.stamp(['boxes'], 2)];
    answers[0]?.(rows(1));
    expect([await one, await two]).to.deep.equal(['1.1', '7']);
    await until('the second query has begun', () => answers.length === 2);
    answers[1]?.(rows(2));
    expect(await Promise.all(later)).to.deep.equal(['1.2', '1.2']);
    expect(answers).to.have.length(2);
    const unknown = freshness.stamp(['nothing'], 1).catch((error: Error) => error.message);
    await until('the third query has begun', () => answers.length === 3);
    answers[2]?.(rows(3));
    expect(await unknown).to.match(/there is no projection nothing/);
  });

  it('on a server is asked once for a request, and again for one that arrived after that', async () => {
    let version = 0;
    const { freshness } = parts({
      kind: 'server',
      pool: {
        query: async () => ({ rows: [{ positions: { boxes_v1: `1.${++version}` }, credentials: `${version}` }] }),
      },
    });
    const arrival = performance.now();
    await until('the clock goes on', () => performance.now() > arrival);
    expect(await freshness.credentials(arrival)).to.equal('1');
    expect(await freshness.stamp(['boxes'], 1, arrival)).to.equal('1.1');
    expect(await freshness.stamp(['boxes'], 'all', arrival)).to.equal('1.1');
    const later = performance.now();
    expect(await freshness.stamp(['boxes'], 1, later), 'of a request that arrived later').to.equal('1.2');
    expect(await freshness.stamp(['boxes'], 1, arrival), 'the newest will do').to.equal('1.2');
    expect(await freshness.stamp(['boxes'], 1), 'asked anew').to.equal('1.3');
    expect(await freshness.credentials()).to.equal('4');
  });

  it('on a server a query that fails fails those who asked, and no later ones', async () => {
    let queries = 0;
    const { freshness } = parts({
      kind: 'server',
      pool: {
        query: async () => {
          if (++queries === 1) throw new Error('the server is away');
          return { rows: [{ positions: { boxes_v1: '1.1' }, credentials: '7' }] };
        },
      },
    });
    const first = freshness.stamp(['boxes'], 1).catch((error: Error) => error.message);
    while (queries === 0) await Promise.resolve();
    const second = freshness.stamp(['boxes'], 1);
    expect([await first, await second]).to.deep.equal(['the server is away', '1.1']);
  });
});
