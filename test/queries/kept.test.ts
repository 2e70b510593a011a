/** Look-ups that are kept while their read models stand still. */
import { expect } from 'chai';
import { createLookUps } from '../../queries/kept.ts';
import type { Reads } from '../../queries/reads.ts';
import type { ReadAt } from '../../shared/ports/read-models.ts';
import { failureOf } from '../support/kit.ts';

describe('cached look-ups', () => {
  const readsAt = (at: ReadAt | 'head'): Reads => ({ where: at, at: (other: ReadAt) => readsAt(other) }) as never;

  function open({ kept = true, scope = 'workspace' }: { kept?: boolean; scope?: 'workspace' | 'all' } = {}) {
    const state = { stamp: 'first' };
    const asked: unknown[] = [];
    const found: unknown[] = [];
    const freshness = {
      async stamp(models: readonly string[], workspace: number | 'all', at: ReadAt) {
        asked.push([models, workspace, at]);
        return { value: state.stamp, position: 0 };
      },
    };
    const lookUps = createLookUps<string>({
      ...{ reads: readsAt('head'), freshness: kept ? freshness : undefined, models: ['agents'], scope, values: 10 },
    });
    const find = async (
      workspace: number,
      name: string,
      at?: ReadAt,
      result: Promise<string> | undefined = undefined,
    ) =>
      (await lookUps(workspace, at))(name, async (reads) => {
        found.push([workspace, name, (reads as unknown as { where: unknown }).where]);
        return (await result) ?? `${name} of ${workspace}`;
      });
    return { state, asked, found, find, lookUps };
  }

  it('run once while the read models are unchanged, in each workspace', async () => {
    const { state, asked, found, find } = open();
    const at = { since: 5 };
    expect([await find(1, 'ann', at), await find(1, 'ann', at), await find(2, 'ann', at)]).to.deep.equal([
      'ann of 1',
      'ann of 1',
      'ann of 2',
    ]);
    // Without waiting: that the read models show `at` was seen to before.
    expect(found).to.deep.equal([
      [1, 'ann', {}],
      [2, 'ann', {}],
    ]);
    expect(asked[0]).to.deep.equal([['agents'], 1, at]);
    state.stamp = 'second';
    await find(1, 'ann', at);
    expect(found).to.have.length(3);
  });

  it('are shared by concurrent callers, and repeated after a failure', async () => {
    const { found, find } = open();
    let answer = (_text: string) => {};
    const coming = new Promise<string>((resolve) => {
      answer = resolve;
    });
    const both = Promise.all([find(1, 'ann', {}, coming), find(1, 'ann', {})]);
    await new Promise(setImmediate);
    expect(found).to.have.length(1);
    answer('found');
    expect(await both).to.deep.equal(['found', 'found']);
    const failed = await failureOf(find(1, 'ben', {}, Promise.reject(new Error('away'))));
    expect([failed, await find(1, 'ben', {})]).to.deep.equal(['away', 'ben of 1']);
  });

  it('that started before a change are not returned to later callers', async () => {
    const { state, find } = open();
    let answer = (_text: string) => {};
    const coming = new Promise<string>((resolve) => {
      answer = resolve;
    });
    const early = find(1, 'ann', {}, coming);
    await new Promise(setImmediate);
    state.stamp = 'second';
    expect(await find(1, 'ann', {})).to.equal('ann of 1');
    answer('before the change');
    expect(await early).to.equal('before the change');
    expect(await find(1, 'ann', {})).to.equal('ann of 1');
  });

  it('check changes in all workspaces if needed, and cache nothing without a change stamp', async () => {
    const all = open({ scope: 'all' });
    await all.find(1, 'ann', {});
    expect(all.asked).to.deep.equal([[['agents'], 'all', {}]]);
    const anew = open({ kept: false });
    await anew.find(1, 'ann');
    await anew.find(1, 'ann', { position: 3 });
    expect(anew.found).to.deep.equal([
      [1, 'ann', 'head'],
      [1, 'ann', { position: 3 }],
    ]);
  });
});
