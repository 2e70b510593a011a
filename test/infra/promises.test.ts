/** What writes promise, and reads wait for, where reads wait for read models instead of writes (ADR 26). Pure. */
import { expect } from 'chai';
import { z } from 'zod';
import type { Database } from '../../infra/database/database.ts';
import { createLogger } from '../../infra/logging.ts';
import { Positions } from '../../infra/read-models/positions.ts';
import { defineProjection, insert, on } from '../../projections/projection.ts';
import type { AppError } from '../../shared/errors.ts';
import { type DomainEvent, defineEvent } from '../../shared/events/define.ts';
import { boxes, boxesProjection as projection, put } from '../support/boxes.ts';
import { eventsOf } from '../support/kit.ts';

describe('what writes promise, and reads wait for', () => {
  const log = createLogger('silent');
  const counted = defineEvent({ type: 'Counted', version: 1, doc: 'test', schema: z.object({ id: z.int() }) });
  const crates = defineProjection({
    name: 'crates',
    version: 2,
    tables: [boxes],
    handlers: [on(put, () => []), on(counted, () => [])],
  });
  function open({ visibleTimeoutMs = 5_000, gathers = ['boxes_v1', 'crates_v2'], now = (): number => 0 } = {}) {
    const database = { pool: { query: async () => ({ rows: [] }) } } as unknown as Database;
    const positions = new Positions({ database, projections: [projection, crates], log, visibleTimeoutMs, now });
    const ended = { times: 0 };
    const end = () => {
      ended.times++;
    };
    for (const schema of gathers) positions.gathers(schema, { end });
    return { positions, ended };
  }
  /** Whether it has settled once everything that is ready has run. */
  async function isOver(work: Promise<unknown>): Promise<boolean> {
    let over = false;
    const done = () => {
      over = true;
    };
    work.then(done, done);
    await new Promise(setImmediate);
    return over;
  }
  const failureOf = (work: Promise<unknown> | undefined) =>
    Promise.resolve(work).then(
      () => undefined,
      (error: unknown) => error as AppError,
    );

  it('a write is answered at once, and a read of what it changes waits, and has the rows hurried up', async () => {
    const { positions, ended } = open();
    expect(positions.settled(), 'nothing was promised').to.equal(undefined);
    await positions.promise([put.type], 7);
    expect(ended.times, 'nobody waits yet').to.equal(0);
    expect([positions.isBehind('boxes_v1'), positions.isBehind('crates_v2')]).to.deep.equal([true, true]);
    const read = positions.settled(['boxes_v1']) as Promise<void>;
    expect(ended.times).to.equal(1);
    expect(positions.isAwaited()).to.equal(true);
    positions.advance('boxes_v1', 6);
    expect(await isOver(read), 'too early').to.equal(false);
    positions.advance('boxes_v1', 7);
    await read;
    expect(positions.isAwaited()).to.equal(false);
    expect(positions.settled(['boxes_v1'])).to.equal(undefined);
    const all = positions.settled() as Promise<void>;
    expect(await isOver(all), 'the other one').to.equal(false);
    positions.rest('crates_v2', true);
    positions.raise(7);
    await all;
    expect(positions.settled()).to.equal(undefined);
  });

  it('a statement waits for the read models that it names, and for all if it names none', async () => {
    const { positions } = open();
    await positions.promise([counted.type], 3);
    expect(positions.settledFor('SELECT * FROM "boxes_v1"."boxes"')).to.equal(undefined);
    const waiting = ['SELECT * FROM "boxes_v1"."boxes", "crates_v2"."boxes"', 'SELECT * FROM crates_v2.boxes'].map(
      (statement) => positions.settledFor(statement) as Promise<void>,
    );
    for (const one of waiting) expect(await isOver(one)).to.equal(false);
    positions.advance('crates_v2', 3);
    await Promise.all(waiting);
  });

  it('what others in the process have received is promised, too', async () => {
    const { positions } = open();
    positions.owe('boxes_v1', [
      { type: put.type, data: { id: 3 }, position: 3 },
      { type: put.type, data: { id: 5 }, position: 5 },
    ]);
    expect([positions.isBehind('boxes_v1'), positions.isBehind('crates_v2')]).to.deep.equal([true, false]);
    expect(positions.isBehind('boxes_v1', new Set([put.type]))).to.equal(false);
    const read = positions.settled() as Promise<void>;
    positions.advance('boxes_v1', 4);
    expect(await isOver(read)).to.equal(false);
    positions.advance('boxes_v1', 5);
    await read;
  });

  it('changes that do not matter to a reader are not waited for', async () => {
    const { positions } = open();
    await positions.promise([counted.type], 3);
    const counts = new Set([counted.type]);
    expect(positions.isBehind('crates_v2')).to.equal(true);
    expect(positions.isBehind('crates_v2', counts)).to.equal(false);
    expect(positions.settled(['crates_v2'], counts)).to.equal(undefined);
    await positions.promise([put.type], 4);
    expect(positions.isBehind('crates_v2', counts)).to.equal(true);
    positions.advance('crates_v2', 4);
    await positions.promise([counted.type], 5);
    expect(positions.isBehind('crates_v2', counts), 'the one that matters is there').to.equal(false);
  });

  it('a write waits for a read model that does not gather, or has stopped, and for one that is too far behind', async () => {
    const { positions } = open({ gathers: ['crates_v2'] });
    const first = positions.promise([put.type], 7);
    expect(await isOver(first), 'boxes do not gather').to.equal(false);
    positions.advance('boxes_v1', 7);
    await first;
    expect(positions.isBehind('crates_v2')).to.equal(true);
    positions.gathers('crates_v2', undefined);
    const second = positions.promise([counted.type], 8);
    expect(await isOver(second), 'crates have stopped').to.equal(false);
    positions.advance('crates_v2', 8);
    await second;
    positions.gathers('crates_v2', { end: () => undefined });
    await positions.promise([counted.type], 1_008);
    const far = positions.promise([counted.type], 1_009);
    expect(await isOver(far), '1,001 behind').to.equal(false);
    positions.advance('crates_v2', 9);
    await far;
    expect(positions.isBehind('crates_v2')).to.equal(true);
  });

  it('a write waits for a read model that others read all the time, so that they need not wait for the write', async () => {
    let clock = 5_000;
    const { positions } = open({ now: () => clock });
    positions.reading('boxes_v1');
    clock += 999;
    const write = positions.promise([put.type], 7);
    positions.owe('boxes_v1', [{ type: put.type, data: { id: 7 }, position: 7 }]);
    expect(await isOver(write)).to.equal(false);
    expect([positions.isBehind('boxes_v1'), positions.isBehind('crates_v2')]).to.deep.equal([false, true]);
    positions.advance('boxes_v1', 7);
    await write;
    clock += 1;
    await positions.promise([put.type], 8);
    expect(positions.isBehind('boxes_v1'), 'nobody has read it for a second').to.equal(true);
  });

  it('a read that waits too long is refused, and says for what; with a read model that is stuck at once', async () => {
    const { positions } = open({ visibleTimeoutMs: 20 });
    await positions.promise([put.type], 7);
    positions.advance('crates_v2', 7);
    const late = await failureOf(positions.settled());
    expect([late?.status, late?.extras.code]).to.deep.equal([503, 'READ_MODEL_BEHIND']);
    expect(late?.message).to.match(/^The read model boxes_v1 does not yet show everything/);

    const other = open({ visibleTimeoutMs: 1_000_000 }).positions;
    await other.promise([put.type], 7);
    const waiting = failureOf(other.settled(['boxes_v1']));
    other.stuck('boxes_v1');
    expect((await waiting)?.extras.code, 'of one that waits already').to.equal('READ_MODEL_BEHIND');
    expect((await failureOf(other.settled(['boxes_v1'])))?.extras.code).to.equal('READ_MODEL_BEHIND');
    const unhurt = other.settled(['crates_v2']) as Promise<void>;
    other.advance('crates_v2', 7);
    await unhurt;
    other.advance('boxes_v1', 5);
    const again = other.settled(['boxes_v1']) as Promise<void>;
    expect(await isOver(again), 'it goes on').to.equal(false);
    other.advance('boxes_v1', 7);
    await again;
  });

  it('nothing is promised of a read model that the events do not concern', async () => {
    const even = defineProjection({
      name: 'even',
      version: 1,
      tables: [boxes],
      handlers: [on(put, ({ data }) => (data.id % 2 === 0 ? [insert(boxes, { id: data.id })] : []))],
      concerns: ({ data }) => (data.id as number) % 2 === 0,
    });
    const database = { pool: { query: async () => ({ rows: [] }) } } as unknown as Database;
    const positions = new Positions({ database, projections: [projection, even], log, visibleTimeoutMs: 5_000 });
    for (const schema of ['boxes_v1', 'even_v1']) positions.gathers(schema, { end: () => undefined });
    const behind = () => [positions.isBehind('boxes_v1'), positions.isBehind('even_v1')];
    const event = (id: number) => ({ ...eventsOf([put.draft({ id })])[0], position: id }) as DomainEvent;
    // Somebody asks for it all the time, so that writes would wait for it.
    positions.reading('even_v1');
    await positions.promise([put.type], 7, [event(7)]);
    positions.owe('even_v1', [event(9)]);
    expect(behind()).to.deep.equal([true, false]);
    expect(await isOver(positions.promise([put.type], 8, [event(8)])), 'waits').to.equal(false);
    expect(await isOver(positions.promise([put.type], 8)), 'which ones is not known').to.equal(false);
    positions.advance('even_v1', 8);
    positions.owe('boxes_v1', [event(9)]);
    expect(behind()).to.deep.equal([true, false]);
  });
});
