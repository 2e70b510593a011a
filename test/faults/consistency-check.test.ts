/** The checker of histories finds each kind of violation, and none in a history without one. */
import { expect } from 'chai';
import { GONE, heldBy, type Operation, violationsOf, WAITING } from '../support/consistency/check.ts';

type Some = Partial<Operation>;
const done = (kind: Operation['kind'], invoked: number, completed: number, what: Some): Operation => ({
  ...{ what: '', kind, invoked, completed },
  ...what,
});
const write = (invoked: number, completed: number, what: Some) => done('write', invoked, completed, what);
const read = (invoked: number, completed: number, what: Some) => done('current', invoked, completed, what);
const found = (...history: readonly Operation[]) => violationsOf(history).map(({ kind }) => kind);

const sets = (value: string, more: Some = {}): Some => ({ writes: ['agent a', value], ...more });
const shows = (value: string, more: Some = {}): Some => ({ shows: [['agent a', value, value]], ...more });
const created = write(0, 1, sets('c1', { position: 1, once: 'creating agent a' }));
const removed = (from: number, to: number, more: Some = {}) =>
  write(from, to, sets(GONE, { once: 'deleting agent a', ...more }));

describe('the history checker', () => {
  it('accepts concurrent operations in any order', () => {
    expect(
      found(
        created,
        write(2, 10, sets('v1')),
        write(3, 9, sets('v2')),
        read(4, 5, shows('c1')),
        read(6, 7, shows('v2')),
        read(8, 11, shows('v1')),
        read(12, 13, shows('v1')),
        removed(14, 20),
        read(15, 16, { absent: 'agent a' }),
        read(17, 18, { lists: 'agent ', shows: [] }),
      ),
    ).to.deep.equal([]);
  });

  it('accepts a write with an unknown outcome that takes effect late or never', () => {
    const unknown = write(2, Infinity, sets('v1'));
    expect(found(created, unknown, read(3, 4, shows('c1')))).to.deep.equal([]);
    expect(found(created, unknown, read(3, 4, shows('c1')), read(5, 6, shows('v1')))).to.deep.equal([]);
    expect(found(created, unknown, read(3, 4, shows('v1')), read(5, 6, shows('c1')))).to.deep.equal(['out of order']);
  });

  it('detects an acknowledged write that a later read does not show', () => {
    expect(found(created, write(2, 3, sets('v1')), read(4, 5, shows('c1')))).to.deep.equal(['out of order']);
  });

  it('detects a read that goes back behind an earlier read of a pending write', () => {
    const running = write(2, 9, sets('v1'));
    expect(found(created, running, read(3, 4, shows('v1')), read(5, 6, shows('c1')))).to.deep.equal(['out of order']);
  });

  it('detects values that reads show alternately', () => {
    expect(
      found(
        created,
        write(2, 20, sets('v1')),
        write(2, 20, sets('v2')),
        ...[3, 5, 7].map((at) => read(at, at + 1, shows(at === 5 ? 'v2' : 'v1'))),
      ),
    ).to.deep.equal(['out of order']);
  });

  it('detects a value that was never written, or is shown before it was written', () => {
    expect(found(created, read(2, 3, shows('x')))).to.deep.equal(['from nowhere']);
    expect(found(created, read(2, 3, shows('v1')), write(4, 5, sets('v1')))).to.deep.equal(['from nowhere']);
  });

  it('detects a partial append', () => {
    const half: Some = { shows: [['agent a', 'v1', 'c1']] };
    expect(found(created, write(2, 9, sets('v1')), read(3, 4, half))).to.deep.equal(['half a write']);
    expect(found(created, write(2, 9, sets('v1')), done('eventual', 3, 4, half))).to.deep.equal(['half a write']);
  });

  it('detects a rejection based on data that later reads do not show', () => {
    const refusal = write(5, 6, sets('v1', { refused: true, absent: 'agent a' }));
    expect(found(created, removed(4, 20), refusal, read(7, 8, shows('c1')))).to.deep.equal(['out of order']);
    expect(found(created, refusal)).to.deep.equal(['missing']);
  });

  it('detects the rejection of a free name', () => {
    const refusal = write(2, 3, sets('c2', { refused: true, exists: 'agent a' }));
    const creating = (completed: number) => write(0, completed, sets('c1', { once: 'creating agent a' }));
    const lookup = (from: number) => read(from, 5, { absent: 'agent a' });
    expect(found(creating(9), refusal, lookup(4))).to.deep.equal(['missing']);
    expect(found(creating(9), refusal, lookup(1))).to.deep.equal([]);
    expect(found(creating(Infinity), refusal, lookup(4)), 'of a process that was killed').to.deep.equal(['missing']);
  });

  it('detects a rejected change that took effect', () => {
    const refused = write(2, 3, sets('v1', { refused: true }));
    expect(found(created, refused, read(4, 5, shows('v1')))).to.deep.equal(['a refused change was made']);
  });

  it('detects entries missing from a list, and entries listed after their deletion', () => {
    const list = (from: number, to: number, ...shown: string[]) =>
      read(from, to, { lists: 'agent ', shows: shown.map((value) => ['agent a', value] as const) });
    expect(found(created, list(2, 3))).to.deep.equal(['missing']);
    expect(found(created, list(0, 3))).to.deep.equal([]);
    expect(found(created, removed(4, 5), list(6, 7, 'c1'))).to.deep.equal(['out of order']);
    expect(found(created, removed(4, 20), list(5, 6), list(7, 8, 'c1'))).to.deep.equal(['out of order']);
    expect(
      found(created, read(2, 3, shows('c1')), read(4, 5, { lacks: ['agent a', 'c1'] }), read(6, 7, shows('c1'))),
    ).to.deep.equal(['missing']);
  });

  it('detects an operation that was done twice', () => {
    expect(found(created, removed(2, 3), removed(4, 5))).to.deep.equal(['done twice']);
  });

  it('detects counters with missing or extra additions, and counters that decrease', () => {
    const add = (from: number, to: number) => write(from, to, { adds: 'comments' });
    const count = (from: number, to: number, value: number) => read(from, to, { counts: [['comments', value]] });
    expect(found(add(0, 1), add(2, 9), count(3, 4, 1), count(3, 5, 2), count(6, 7, 2))).to.deep.equal([]);
    expect(found(add(0, 1), count(2, 3, 0))).to.deep.equal(['missing']);
    expect(found(add(0, 1), count(2, 3, 2))).to.deep.equal(['from nowhere']);
    expect(found(add(0, 9), count(1, 2, 1), count(3, 4, 0))).to.deep.equal(['out of order']);
  });

  describe('for the queue', () => {
    const waits = write(0, 1, { writes: ['task q', WAITING] });
    const claim = (from: number, to: number, agent: string) =>
      write(from, to, { agent, task: 'task q', writes: ['task q', heldBy(agent)], once: 'claiming task q' });
    const told = (from: number, to: number, agent: string) =>
      write(from, to, { agent, task: 'task q', shows: [['task q', heldBy(agent)]] });
    const handIn = (from: number, to: number) => write(from, to, { writes: ['task q', 'v1'] });

    it('accepts one agent at work, and claims with lost responses', () => {
      expect(found(waits, claim(2, 3, 'a'), told(4, 5, 'a'), handIn(6, 7))).to.deep.equal([]);
      expect(found(waits, write(2, Infinity, { agent: 'a' }), told(4, 5, 'a'))).to.deep.equal([]);
    });
    it('detects a task that two agents get', () => {
      expect(found(waits, claim(2, 3, 'a'), told(4, 5, 'b'))).to.include('from nowhere');
      expect(found(waits, claim(2, 5, 'a'), claim(3, 6, 'b'))).to.include('done twice');
    });
    it('detects an agent that gets a task it has completed', () => {
      expect(found(waits, claim(2, 3, 'a'), handIn(4, 5), told(6, 7, 'a'))).to.deep.equal(['out of order']);
    });
    it('detects a poll that misses a task or gives an agent too many', () => {
      expect(found(waits, write(2, 3, { agent: 'b' }), claim(4, 5, 'a'))).to.deep.equal(['missing']);
      expect(found(waits, claim(2, 3, 'a'), write(4, 5, { agent: 'a' }))).to.deep.equal(['too much work']);
      expect(found(waits, claim(2, 3, 'a'), handIn(4, 8), write(5, 6, { agent: 'a' }))).to.deep.equal([]);
    });
  });

  describe('for positions', () => {
    const changed = write(2, 3, sets('v1', { position: 5 }));
    it('detects a position below an earlier one', () => {
      expect(found(created, changed, read(4, 5, shows('v1', { position: 4 })))).to.deep.equal(['position']);
      expect(found(created, changed, write(4, 5, sets('v2', { position: 4 })))).to.deep.equal(['position']);
    });
    it('detects a position below the requested one', () => {
      expect(found(created, done('at', 2, 3, shows('c1', { atLeast: 5, position: 4 })))).to.deep.equal(['position']);
    });
    it('detects a response with data older than its position or than its newest object', () => {
      const eventual = (value: string, position: number) => done('eventual', 4, 5, shows(value, { position }));
      expect(found(created, changed, eventual('c1', 4))).to.deep.equal([]);
      expect(found(created, changed, eventual('c1', 5))).to.deep.equal(['shows less than its position']);
      const other = write(2, 3, { writes: ['agent b', 'v2'], position: 6 });
      const both = (kind: 'at' | 'eventual') =>
        done(kind, 4, 5, {
          position: 4,
          shows: [
            ['agent a', 'c1'],
            ['agent b', 'v2'],
          ],
        });
      expect(found(created, changed, other, both('at'))).to.deep.equal(['shows less than its position']);
      expect(found(created, changed, other, both('eventual'))).to.deep.equal([]);
      expect(found(created, done('at', 4, 5, { position: 1, absent: 'agent a' }))).to.deep.equal(['missing']);
    });
    it('detects decreasing positions of eventual reads within one process', () => {
      const eventual = (at: number, position: number, source: string) =>
        done('eventual', at, at + 1, { position, source });
      expect(found(eventual(2, 5, 'one'), eventual(4, 4, 'one'))).to.deep.equal(['position']);
      expect(found(eventual(2, 5, 'one'), eventual(4, 4, 'two'))).to.deep.equal([]);
    });
  });
});
