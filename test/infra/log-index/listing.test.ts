/** Looking events up by their fields, over the blocks of numbers that the indexes have. */
import { expect } from 'chai';
import { createLogIndex } from '../../../infra/log-index/log-index.ts';
import type { EventLog } from '../../../shared/ports/event-log.ts';
import type { EntryFilter } from '../../../shared/ports/history/events.ts';
import { fixture } from '../../support/fixture.ts';
import { embeddedDatabase } from '../../support/world.ts';

/** Of three blocks and a half. */
const COUNT = 3_600;

/** Event n has the position 2n + 2, so positions between two events occur, too. */
const FILL = `
  INSERT INTO log.entries (number, position, at, latest, id, correlation, revision, stream, type, actor, actor_name, leaf)
  SELECT n, 2 * n + 2, 1000 * n, 1000 * n, md5('id' || n)::uuid, md5('cause' || n % 500)::uuid, n / 7, 's-' || n % 7,
    'Type' || n % 3, 'agent:' || n % 5, 'name ' || n % 5, '\\x00' FROM generate_series(0, ${COUNT - 1}) n`;

describe('the index of the log', () => {
  const place = fixture(embeddedDatabase);
  before(() => place.database.pool.query(FILL));

  const numbers = async (filter: EntryFilter, limit: number) => {
    const index = createLogIndex({ database: place.database, eventLog: {} as EventLog, timeoutMs: 1_000 });
    return (await index.list(filter, limit)).map(({ number }) => number);
  };
  const all = Array.from({ length: COUNT }, (_, n) => n);

  it('lists matches in the order of the log, from any position or time to any time', async () => {
    const kinds: [EntryFilter, (n: number) => boolean][] = [
      [{}, () => true],
      [{ type: 'Type1' }, (n) => n % 3 === 1],
      [{ stream: 's-3' }, (n) => n % 7 === 3],
      [{ actor: 'agent:2' }, (n) => n % 5 === 2],
      [{ actor: 'name 4', type: 'Type0' }, (n) => n % 5 === 4 && n % 3 === 0],
    ];
    const bounds: [EntryFilter, number, number][] = [
      [{}, 0, COUNT],
      [{ after: 2 * 1_023 + 1 }, 1_023, COUNT],
      [{ after: 2 * 1_023 + 2 }, 1_024, COUNT],
      [{ since: 1_024_000, until: 2_047_000 }, 1_024, 2_048],
      [{ after: 4_200, until: 2_500_500 }, 2_100, 2_501],
      [{ after: 2 * COUNT }, COUNT, COUNT],
    ];
    for (const [kind, isOf] of kinds)
      for (const [bound, from, to] of bounds)
        for (const limit of [1, 40, 5_000]) {
          const expected = all.filter((n) => isOf(n) && n >= from && n < to).slice(0, limit);
          expect(await numbers({ ...kind, ...bound }, limit), JSON.stringify([kind, bound])).to.deep.equal(expected);
        }
  });

  it('lists the events of a first cause in the order of the log', async () => {
    const { rows } = await place.database.pool.query("SELECT md5('cause7') AS id");
    const correlation = String(rows[0].id).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    const expected = all.filter((n) => n % 500 === 7);
    expect(await numbers({ correlation }, 100)).to.deep.equal(expected);
    expect(await numbers({ correlation, after: 2 * 1_100 }, 2)).to.deep.equal([1_507, 2_007]);
  });
});
