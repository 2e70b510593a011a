import { expect } from 'chai';
import { cursorFor, decideSynced, pageFor, type Synced, syncDecider } from '../../../commands/github/syncs.ts';
import { stateAfter } from '../../support/kit.ts';

const SYNCED: Synced = {
  ...{ source: 'project-3', repo: 'Acme/Web', project_id: 3, error: null, cursor: null, page: 1 },
  ...{ issues: 0, imported: 0, updated: 0, pushed: 0, skipped: 0, errors: 0 },
};
const ONE = '2026-01-01T00:00:00Z';

describe('GitHub syncs: decisions', () => {
  const given = (...fields: Partial<Synced>[]) =>
    fields.reduce(
      (state, one) =>
        decideSynced(state, 1, { ...SYNCED, ...one }, false).reduce(
          (before, draft) => syncDecider.evolve(before, { ...draft, at: 0 }),
          state,
        ),
      stateAfter(syncDecider),
    );
  const decide = (state: ReturnType<typeof given>, fields: Partial<Synced>, quiet = true) =>
    decideSynced(state, 9, { ...SYNCED, ...fields }, quiet).map(({ data }) => data.status);

  it('a scheduled sync is recorded only if something changed', () => {
    expect(decide(given(), {})).to.deep.equal([]);
    expect(decide(given(), {}, false), 'by hand').to.deep.equal(['success']);
    for (const done of [{ imported: 1 }, { updated: 1 }, { pushed: 1 }, { cursor: ONE }])
      expect(decide(given(), done), JSON.stringify(done)).to.deep.equal(['success']);
    expect(decide(given({ cursor: ONE }), { cursor: ONE })).to.deep.equal([]);
    const failed = { error: 'GitHub is away', errors: 1 };
    expect(decide(given(), failed)).to.deep.equal(['error']);
    expect(decide(given(failed), failed), 'the same failure again').to.deep.equal([]);
    expect(decide(given(failed), {}), 'it is over').to.deep.equal(['success']);
    expect(decide(given(), { ...failed, pushed: 1 })).to.deep.equal(['partial']);
  });

  it('a sync resumes from its last position unless the project’s repository has changed', () => {
    const state = given({ cursor: ONE });
    expect(state).to.deep.include({ syncs: 1, error: null });
    expect(cursorFor(state, 'acme/web')).to.equal(ONE);
    expect(cursorFor(state, 'acme/other')).to.equal(null);
    expect(given({ cursor: ONE }, { error: 'x', errors: 1 }).cursor, 'a failed one does not move it').to.equal(ONE);
    expect(given({ cursor: ONE }, { repo: 'acme/other' }).cursor).to.equal(null);
    const within = given({ cursor: ONE, page: 9 });
    expect([pageFor(within, 'acme/web'), pageFor(within, 'acme/other')]).to.deep.equal([9, 1]);
    expect(pageFor(given({ cursor: ONE, page: 9 }, { error: 'x', errors: 1 }), 'acme/web')).to.equal(9);
    expect(decide(within, { cursor: ONE, page: 10 }), 'a scheduled sync that reached a page').to.deep.equal([
      'success',
    ]);
  });
});
