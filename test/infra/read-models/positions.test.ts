/** How far read models are, and what a process knows of it: changes, positions, checkpoints, stamps. Pure. */
import { expect } from 'chai';
import type pg from 'pg';
import type { Database } from '../../../infra/database/database.ts';
import { createMarkWatch } from '../../../infra/database/mark.ts';
import { createTakeUp } from '../../../infra/following/checkpoints.ts';
import { createLogger } from '../../../infra/logging.ts';
import { createChangeTracker } from '../../../infra/read-models/change-tracker.ts';
import { type Concerns, createConcerns } from '../../../infra/read-models/concerns.ts';
import { Positions, type PositionsOptions } from '../../../infra/read-models/positions.ts';
import { AppError } from '../../../shared/errors.ts';
import type { LoggedEvent } from '../../../shared/ports/event-log.ts';
import { atHead } from '../../../shared/ports/read-models.ts';
import { nextTurn } from '../../../shared/waiting.ts';
import { boxes, boxesProjection as projection, put } from '../../support/boxes.ts';
import { failureOf } from '../../support/kit.ts';
import { until } from '../../support/until.ts';

describe('the change tracker', () => {
  it('distinguishes workspaces and read models', () => {
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

  it('changes every value of a read model at a reset', () => {
    const changes = createChangeTracker();
    changes.record('a_v1', 1, 10);
    const before = changes.last('a_v1', 1);
    changes.reset('a_v1');
    const reset = changes.last('a_v1', 1);
    expect(reset).to.not.equal(before);
    changes.record('a_v1', 1, 10);
    expect([before, reset]).to.not.include(changes.last('a_v1', 1));
  });

  it('has a limit: a dropped workspace counts as changed when it was dropped, and no earlier', () => {
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

describe('changes by the agents that they concern', () => {
  const ada = { workspace: 1, names: ['ada'], ids: [7] };
  const bob = { workspace: 1, names: ['bob'], ids: [8] };
  const TABLES = ['t_v1.a', 't_v1.b'];
  const changed = (concerns: Concerns, position: number) =>
    [ada, bob, { ...ada, workspace: 2 }].map((agent) => concerns.after(position, TABLES, agent));

  it('go by name, by id, by a text, or concern all of a workspace', () => {
    for (const [concerned, expected] of [
      [{ names: ['ada', null] }, [true, false, false]],
      [{ ids: [8, null] }, [false, true, false]],
      [{ mentionedIn: 'for bob and others' }, [false, true, false]],
      ['all', [true, true, false]],
      [{}, [false, false, false]],
    ] as const) {
      const concerns = createConcerns();
      concerns.record('t_v1.b', 1, concerned, 5);
      concerns.record('t_v1.other', 1, 'all', 9);
      expect(changed(concerns, 4), JSON.stringify(concerned)).to.deep.equal(expected);
      expect(changed(concerns, 5), 'not after it').to.deep.equal([false, false, false]);
      concerns.clear();
      expect(changed(concerns, 0)).to.deep.equal([false, false, false]);
    }
  });

  it('have a limit: what was dropped concerns all', () => {
    const concerns = createConcerns();
    for (let id = 1; id <= 50_001; id++) concerns.record('t_v1.a', 3, { ids: [id] }, id);
    expect(changed(concerns, 0)).to.deep.equal([true, true, true]);
    expect(changed(concerns, 1)).to.deep.equal([false, false, false]);
    for (let n = 1; n <= 2_001; n++) concerns.record('t_v1.b', 3, { mentionedIn: 'a text' }, 60_000 + n);
    expect(changed(concerns, 60_000)).to.deep.equal([true, true, true]);
    expect(changed(concerns, 60_001)).to.deep.equal([false, false, false]);
    concerns.record('t_v1.b', 3, { mentionedIn: 'x'.repeat(1_000_000) }, 70_000);
    expect(changed(concerns, 62_000), 'of texts by their characters').to.deep.equal([true, true, true]);
    expect(changed(concerns, 62_001)).to.deep.equal([false, false, false]);
  });
});

/** A database that says what `answer` gives, and can lose rows. */
function databaseThat(answer: () => Promise<object[]> | object[], more: object = {}) {
  const listeners: (() => void)[] = [];
  const database = {
    pool: { query: async () => ({ rows: await answer() }) },
    losses: 0,
    onLoss: (listener: () => void) => listeners.push(listener),
    ...more,
  };
  return {
    database: database as unknown as Database,
    lose: () => {
      database.losses++;
      for (const listener of listeners) listener();
    },
  };
}

/** What the database says of one read model that has reached `position`, and whose rows changed last at `changed`. */
const said = (position: number, changed = position, credentials = 7, head = position, credentialsAt = 0) => ({
  checkpoints: { boxes_v1: `${position} 1.${changed}` },
  credentials: String(credentials),
  credentialsAt,
  head,
});

const eventOf = (type: string, position: number): LoggedEvent => ({
  id: `${position}`,
  type,
  stream: 's',
  revision: position,
  position,
  data: {},
  meta: {},
});

describe('read model positions', () => {
  const log = createLogger('silent');
  const BOXES = ['boxes_v1'];
  const open = (options: { timeoutMs?: number; head?: number; database?: Database } = {}) => {
    const { timeoutMs = 5_000, head, database = databaseThat(() => [said(0)]).database } = options;
    return new Positions({
      ...{ database, projections: [projection], log, visibleTimeoutMs: timeoutMs },
      head: head === undefined ? undefined : () => head,
    });
  };
  const stateOf = (work: Promise<unknown>) => {
    const state = { done: false };
    work.then(
      () => {
        state.done = true;
      },
      () => undefined,
    );
    return state;
  };

  it('increase, and never decrease by themselves', () => {
    const positions = open();
    expect(positions.shown('boxes_v1')).to.equal(0);
    positions.advance('boxes_v1', 5);
    positions.advance('boxes_v1', 3);
    expect(positions.shown('boxes_v1')).to.equal(5);
  });

  it('include all events that the reader has seen, if none concerns the read model', () => {
    const positions = open();
    positions.saw(4, []);
    expect(positions.shown('boxes_v1'), 'it may lack what is before the reader').to.equal(0);
    positions.advance('boxes_v1', 4);
    positions.saw(9, [eventOf('NobodyListens', 9)]);
    expect(positions.shown('boxes_v1')).to.equal(9);
    positions.saw(12, [eventOf(put.type, 11), eventOf('NobodyListens', 12)]);
    expect(positions.shown('boxes_v1'), 'what it showed before').to.equal(9);
    positions.advance('boxes_v1', 11);
    expect(positions.shown('boxes_v1')).to.equal(12);
  });

  it('ignore events that a projection filters out', () => {
    const choosy = { ...projection, wants: ({ data }: { data: { readonly to?: unknown } }) => data.to === 'me' };
    const { database } = databaseThat(() => [said(0)]);
    const positions = new Positions({ database, projections: [choosy], log, visibleTimeoutMs: 5_000 });
    positions.saw(1, []);
    positions.advance('boxes_v1', 1);
    positions.saw(2, [eventOf(put.type, 2)]);
    expect(positions.shown('boxes_v1')).to.equal(2);
    positions.saw(3, [{ ...eventOf(put.type, 3), data: { to: 'me' } }]);
    expect(positions.shown('boxes_v1')).to.equal(2);
  });

  it('start again if the log was replaced by a shorter one', () => {
    const positions = open();
    positions.saw(9, []);
    positions.advance('boxes_v1', 9);
    positions.saw(3, []);
    expect(positions.shown('boxes_v1')).to.equal(0);
    positions.advance('boxes_v1', 3);
    expect(positions.shown('boxes_v1')).to.equal(3);
  });

  it('make a read wait until its read models have reached the head, and end any gathering', async () => {
    const positions = open({ head: 7 });
    let hurried = 0;
    positions.onWait(() => hurried++);
    positions.saw(6, []);
    positions.advance('boxes_v1', 6);
    const read = positions.reachSchemas([...BOXES, ...BOXES], atHead());
    const state = stateOf(read);
    await until('it waits', () => positions.isAwaited());
    expect([positions.isAwaited(), hurried]).to.deep.equal([true, 1]);
    positions.saw(7, [eventOf(put.type, 7)]);
    await new Promise(setImmediate);
    expect(state.done, 'too early').to.equal(false);
    positions.advance('boxes_v1', 7);
    expect(await read).to.equal(7);
    expect(positions.isAwaited()).to.equal(false);
    expect([await positions.reachSchemas(BOXES, atHead()), hurried], 'without waiting').to.deep.equal([7, 1]);
  });

  it('make a read at a position wait for that position, and one without a position for nothing', async () => {
    const positions = open({ head: 9 });
    positions.saw(8, []);
    positions.advance('boxes_v1', 5);
    expect(await positions.reachSchemas(BOXES, { position: 4 })).to.equal(4);
    expect(await positions.reachSchemas(BOXES, {})).to.equal(5);
    const read = positions.reachSchemas(BOXES, { position: 6 });
    expect(positions.isAwaited()).to.equal(true);
    positions.advance('boxes_v1', 6);
    expect(await read).to.equal(6);
    const own = positions.reachSchemas(BOXES, { since: performance.now(), position: 10 });
    const state = stateOf(own);
    positions.advance('boxes_v1', 9);
    await new Promise(setImmediate);
    expect(state.done).to.equal(false);
    positions.advance('boxes_v1', 10);
    expect(await own, 'at the head, and at what the caller has appended').to.equal(10);
  });

  it('show which positions are in the log', async () => {
    const positions = open({ head: 9 });
    positions.saw(5, []);
    expect(await Promise.all([4, 9, 10].map((position) => positions.has(position)))).to.deep.equal([true, true, false]);
  });

  it('make commands wait for all projections of an event type, if there are any', async () => {
    const positions = open({ head: 7 });
    await positions.reach(['NobodyListens'], atHead());
    const reached = positions.reach([put.type, 'NobodyListens'], atHead());
    positions.advance('boxes_v1', 7);
    await reached;
  });

  it('reject a read that is not reached in time, with the position of the read model', async () => {
    const positions = open({ timeoutMs: 20, head: 7 });
    positions.advance('boxes_v1', 3);
    const error = await positions.reachSchemas(BOXES, atHead()).catch((reason: unknown) => reason);
    if (!(error instanceof AppError)) throw error;
    const { code, body, headers } = error.extras;
    expect([error.status, code, body, headers]).to.deep.equal([
      503,
      'READ_MODEL_BEHIND',
      { position: 7, reached: 3 },
      { 'Retry-After': '1' },
    ]);
    expect(error.message).to.match(/position 7.* boxes_v1 \(position 3\)/);
    expect(positions.isAwaited(), 'nobody waits any more').to.equal(false);
  });

  it('are read from the database with its head, repeatedly while a read waits', async () => {
    let position = 4;
    const { database } = databaseThat(() => [said(position, 0, 7, 8)]);
    const positions = open({ database });
    positions.watch();
    positions.watch();
    await until('it has asked', () => positions.shown('boxes_v1') === 4);
    const seen = positions.reachSchemas(BOXES, atHead());
    const state = stateOf(seen);
    await until('it waits', () => positions.isAwaited());
    expect(state.done).to.equal(false);
    position = 8;
    expect(await seen).to.equal(8);
    await positions.close();
  });

  it('are received from other processes', async () => {
    let heard: { heard(payload: string): void } | undefined;
    let stopped = false;
    const listener = {
      listen(channel: string, what: typeof heard) {
        expect(channel).to.equal('signalbox_positions');
        heard = what;
        return () => {
          stopped = true;
        };
      },
    };
    const positions = open({ database: databaseThat(() => [said(0)], { listener }).database });
    positions.watch();
    heard?.heard('others_v1:9,boxes_v1:6');
    for (const odd of ['boxes_v1', '', ':9', 'boxes_v1:', ',', 'boxes_v1:5']) heard?.heard(odd);
    expect(positions.shown('boxes_v1')).to.equal(6);
    await positions.close();
    expect(stopped).to.equal(true);
  });

  it('are dropped with earlier results if the database has lost rows', async () => {
    const answers: ((rows: object[]) => void)[] = [];
    const { database, lose } = databaseThat(() => new Promise((resolve) => answers.push(resolve)));
    const positions = open({ database });
    positions.saw(6, []);
    positions.advance('boxes_v1', 6);
    const stamp = positions.stamp(['boxes'], 1, {});
    await until('the database is asked', () => answers.length === 1);
    lose();
    expect(positions.shown('boxes_v1')).to.equal(0);
    answers[0]?.([said(6)]);
    await until('it is asked again', () => answers.length === 2);
    expect(positions.shown('boxes_v1'), 'from before the loss').to.equal(0);
    answers[1]?.([said(6)]);
    const { value } = await stamp;
    expect(positions.shown('boxes_v1')).to.equal(6);
    const later = positions.stamp(['boxes'], 1, atHead());
    await until('it is asked for the head', () => answers.length === 3);
    answers[2]?.([said(6)]);
    expect((await later).value, 'what was kept under the first was read without waiting').to.not.equal(value);
  });
});

describe('the server mark', () => {
  it('shows a possible loss of rows when it changes', async () => {
    const watch = createMarkWatch();
    let losses = 0;
    const stop = watch.onLoss(() => losses++);
    const checked = async (...answers: (object[] | Error)[]) => {
      const query = async () => {
        const rows = answers.shift();
        if (rows instanceof Error) throw rows;
        return { rows };
      };
      await watch.check({ query } as unknown as pg.ClientBase);
      return losses;
    };
    expect(await checked(Object.assign(new Error('no such table'), { code: '42P01' }))).to.equal(0);
    expect(await checked([{ mark: 'a' }])).to.equal(0);
    expect(await checked([{ mark: 'a' }])).to.equal(0);
    expect(await checked([], [], [{ mark: 'b' }]), 'after a crash there is none').to.equal(1);
    expect(watch.losses).to.equal(1);
    expect(await checked([{ mark: 'b' }])).to.equal(1);
    expect(await failureOf(checked(new Error('the connection broke')))).to.equal('the connection broke');
    stop();
    expect([await checked([{ mark: 'c' }]), watch.losses]).to.deep.equal([1, 2]);
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

  it('shares one statement on the embedded database, and fails only for missing checkpoints', async () => {
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

  it('uses one statement per checkpoint on a server', async () => {
    const { asked, takeUp } = parts('server');
    const [one, two] = await Promise.all([takeUp('a'), takeUp('bb')]);
    expect([one.position, two.position]).to.deep.equal([1, 2]);
    expect(asked).to.deep.equal([['a'], ['bb']]);
  });
});

describe('stamps', () => {
  const parts = (database: Database, options: Pick<PositionsOptions, 'head' | 'own'> = {}) =>
    new Positions({
      ...{ database, projections: [projection], log: createLogger('silent'), visibleTimeoutMs: 5_000, ...options },
    });
  const alone = (head: number) => {
    const changes = createChangeTracker();
    const state = { credentials: 0 };
    const own = { changes, leases: () => 0, credentials: () => state.credentials };
    const neverAsked = () => {
      throw new Error('the database was asked');
    };
    return { changes, state, positions: parts(databaseThat(neverAsked).database, { head: () => head, own }) };
  };
  const now = () => performance.now();

  it('of a process that makes all changes are known without asking', async () => {
    const { positions, changes, state } = alone(0);
    changes.record('boxes_v1', 1, 4);
    const before = await positions.stamp(['boxes'], 1, atHead());
    expect(await positions.stamp(['boxes'], 1, atHead())).to.deep.equal(before);
    changes.record('boxes_v1', 2, 5);
    expect(await positions.stamp(['boxes'], 1, atHead()), 'another workspace').to.deep.equal(before);
    changes.record('boxes_v1', 1, 5);
    expect(await positions.stamp(['boxes'], 1, atHead())).to.not.deep.equal(before);
    const credentials = await positions.credentials(['boxes'], now());
    state.credentials++;
    const changed = await positions.credentials(['boxes'], now());
    expect(changed).to.not.equal(credentials);
    changes.record('boxes_v1', 1, 6);
    expect(await positions.credentials(['boxes'], now())).to.not.equal(changed);
    const unknown = await failureOf(positions.stamp(['nothing'], 1, atHead()));
    expect(unknown).to.equal('there is no projection nothing');
  });

  it('of such a process wait for the head, unless the caller does not', async () => {
    const { positions, changes } = alone(5);
    expect(await positions.stamp(['boxes'], 1, {})).to.deep.equal({
      value: `0,${changes.last('boxes_v1', 1)}`,
      position: 0,
    });
    const waiting = positions.stamp(['boxes'], 1, atHead());
    await until('it waits', () => positions.isAwaited());
    changes.record('boxes_v1', 1, 5);
    positions.advance('boxes_v1', 5);
    expect(await waiting).to.deep.equal({ value: `0,${changes.last('boxes_v1', 1)}`, position: 5 });
    expect(await positions.stamp(['boxes'], 1, atHead())).to.deep.equal(await waiting);
  });

  it('for an agent of such a process change with rows that concern it', async () => {
    const changes = createChangeTracker();
    const own = { changes, leases: () => 0, credentials: () => 0 };
    const concerning = { ...projection, tables: [{ ...boxes, concerns: () => 'all' as const }] };
    const positions = new Positions({
      ...{ database: databaseThat(() => []).database, projections: [concerning], log: createLogger('silent') },
      ...{ visibleTimeoutMs: 5_000, head: () => 0, own },
    });
    const ada = { workspace: 1, names: ['ada'], ids: [7] };
    const sources = { tables: [{ projection: 'boxes', table: 'boxes' }], models: [] };
    const first = await positions.stampFor(ada, sources, {});
    expect(first.isCurrent, 'nothing was built').to.equal(false);
    const current = async (earlier = first) => (await positions.stampFor(ada, sources, {}, earlier)).isCurrent;
    expect(await current()).to.equal(true);
    changes.record('boxes_v1', 1, 5);
    changes.concerns.record('boxes_v1.boxes', 1, { names: ['bob'] }, 5);
    expect(await current()).to.equal(true);
    changes.concerns.record('boxes_v1.boxes', 1, { names: ['ada'] }, 6);
    expect(await current()).to.equal(false);
    positions.advance('boxes_v1', 6);
    const next = await positions.stampFor(ada, sources, {});
    expect(await current(next)).to.equal(true);
    changes.reset('boxes_v1');
    expect(await current(next), 'after a reset').to.equal(false);
    const unknown = { ...sources, tables: [{ projection: 'boxes', table: 'lids' }] };
    expect(await failureOf(positions.stampFor(ada, unknown, {}))).to.match(/boxes\.lids does not say/);
  });

  it('on a server are asked of the database: once for those of a moment, and never by a query that began before', async () => {
    const answers: ((rows: object[]) => void)[] = [];
    const positions = parts(databaseThat(() => new Promise((resolve) => answers.push(resolve))).database);
    const [one, two] = [positions.stamp(['boxes'], 1, atHead()), positions.credentials(['boxes'], now())];
    await until('the first query has begun', () => answers.length === 1);
    const later = [positions.stamp(['boxes'], 1, atHead()), positions.stamp(['boxes'], 2, atHead())];
    answers[0]?.([said(1)]);
    expect([await one, await two]).to.deep.equal([{ value: '0,1.1', position: 1 }, '0,1.1 7']);
    await until('the second query has begun', () => answers.length === 2);
    answers[1]?.([said(2)]);
    for (const stamp of await Promise.all(later)) expect(stamp).to.deep.equal({ value: '0,1.2', position: 2 });
    expect(answers).to.have.length(2);
  });

  it('on a server are asked once for a request, and again for one that arrived after that', async () => {
    let version = 0;
    const positions = parts(databaseThat(() => [said(++version, version, version)]).database);
    const arrival = now();
    await until('the clock goes on', () => now() > arrival);
    expect(await positions.credentials(['boxes'], arrival)).to.equal('0,1.1 1');
    const at = { since: arrival };
    for (const workspace of [1, 'all'] as const)
      expect(await positions.stamp(['boxes'], workspace, at)).to.deep.equal({ value: '0,1.1', position: 1 });
    const later = now();
    const second = await positions.stamp(['boxes'], 1, { since: later });
    expect(second.value, 'of one that arrived later').to.equal('0,1.2');
    expect((await positions.stamp(['boxes'], 1, at)).value, 'the newest will do').to.equal('0,1.2');
    expect((await positions.stamp(['boxes'], 1, {})).value, 'whatever is there').to.equal('0,1.2');
    expect(await positions.stamp(['boxes'], 1, { position: 2 })).to.deep.equal(second);
    const third = positions.stamp(['boxes'], 1, { position: 3 });
    positions.advance('boxes_v1', 3);
    expect(await third, 'what is from before the position will not').to.deep.equal({ value: '0,1.3', position: 3 });
  });

  it('on a server are asked for again after waiting, because what was said first may be from before the head', async () => {
    const rows = [said(3, 3, 7, 5), said(6, 6, 7, 6)];
    let asked = 0;
    const positions = parts(databaseThat(() => [rows[Math.min(asked++, 1)] as object]).database);
    const stamp = positions.stamp(['boxes'], 1, atHead());
    await until('it waits', () => positions.isAwaited());
    positions.advance('boxes_v1', 5);
    expect(await stamp).to.deep.equal({ value: '0,1.6', position: 5 });
    expect(asked).to.equal(2);
  });

  it('is current for credentials on a server once their last acknowledged change is shown', async () => {
    const rows = [said(3, 3, 7, 9, 5), said(6, 6, 8, 9, 5)];
    let asked = 0;
    const positions = parts(databaseThat(() => [rows[Math.min(asked++, 1)] as object]).database);
    const stamp = positions.credentials(['boxes'], now());
    await until('it waits', () => positions.isAwaited());
    positions.advance('boxes_v1', 5);
    expect(await stamp).to.equal('0,1.6 7');
    expect(await positions.credentials(['boxes'], now()), 'without waiting').to.equal('0,1.6 8');
  });

  it('fails on a server only for the callers of a failed query, and not for later ones', async () => {
    let queries = 0;
    const positions = parts(
      databaseThat(() => {
        if (++queries === 1) throw new Error('the server is away');
        return [said(1)];
      }).database,
    );
    const first = positions.stamp(['boxes'], 1, atHead()).catch((error: Error) => error.message);
    while (queries === 0) await nextTurn();
    const second = positions.stamp(['boxes'], 1, atHead());
    expect([await first, (await second).value]).to.deep.equal(['the server is away', '0,1.1']);
  });
});
