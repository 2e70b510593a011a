import { expect } from 'chai';
import { sessionsProjection } from '../../projections/sessions.ts';
import { sessionControlled, sessionPrefSet, sessionReported } from '../../shared/events/sessions.ts';
import { seconds } from '../../shared/time.ts';
import { eventsOf, rowsAfter, sample, timeOf } from '../support/kit.ts';

describe('projection sessions', () => {
  const time = (n: number) => seconds(timeOf(n));
  const reported = (more: object = {}) => sample(sessionReported, { id: 1, session_id: 's', ...more });
  const controlled = (action: Parameters<typeof sessionControlled.draft>[0]['action'], value: string | null = null) =>
    sessionControlled.draft({ id: 1, session_id: 's', action, value });
  const sessions = (...drafts: Parameters<typeof eventsOf>[0]) =>
    rowsAfter(sessionsProjection, eventsOf(drafts)).cli_sessions;

  it('keeps fields that a report omits', () => {
    const first = reported({ agent_name: 'ada', model: 'm', input_tokens: 5, estimated_cost: 0.25 });
    expect(sessions(first, reported({ input_tokens: 9, git_branch: 'main' }))).to.deep.equal([
      {
        workspace_id: 1,
        session_id: 's',
        id: 1,
        agent_name: 'ada',
        project_slug: 'ada',
        project_path: null,
        model: 'm',
        git_branch: 'main',
        user_messages: 0,
        assistant_messages: 0,
        tool_uses: 0,
        input_tokens: 9,
        output_tokens: 0,
        estimated_cost: 0.25,
        label: null,
        settings: {},
        terminated: false,
        created_at: time(1),
        reported_at: time(2),
        updated_at: time(2),
        position: 2,
      },
    ]);
  });

  it('shows the configured values, and a terminated session resumes with its next report', () => {
    const set = [controlled('set-thinking', 'high'), controlled('set-label', 'mine'), controlled('pause')];
    expect(sessions(reported(), ...set)[0]).to.deep.include({ settings: { thinking: 'high' }, label: 'mine' });
    expect(sessions(reported(), ...set, controlled('set-label', ''))[0]).to.include({ label: null });
    expect(sessions(reported(), controlled('terminate'))[0]).to.include({ terminated: true, reported_at: time(1) });
    expect(sessions(reported(), controlled('terminate'), reported())[0]).to.include({ terminated: false });
    expect(sessions(reported(), controlled('delete'))).to.deep.equal([]);
  });

  it('keeps totals over all sessions, including ended and deleted ones', () => {
    const other = { id: 2, session_id: 'other' };
    const totals = (...drafts: Parameters<typeof eventsOf>[0]) => {
      const [row] = rowsAfter(sessionsProjection, eventsOf(drafts)).session_totals;
      return row && [row.sessions, row.input_tokens, row.output_tokens, row.cost];
    };
    const one = reported({ input_tokens: 5, output_tokens: 1, estimated_cost: 0.1 });
    const two = reported({ ...other, input_tokens: 7, estimated_cost: 0.2 });
    expect(totals(one, two)).to.deep.equal([2, 12, 1, 300_000_000]);
    expect(totals(one, two, reported({ input_tokens: 6 })), 'a later report replaces').to.deep.equal([
      2, 13, 1, 300_000_000,
    ]);
    expect(totals(one, two, controlled('terminate'), controlled('set-label', 'mine'))).to.deep.equal([
      2, 12, 1, 300_000_000,
    ]);
    expect(totals(one, two, controlled('delete'))).to.deep.equal([1, 7, 0, 200_000_000]);
    expect(totals(one, controlled('delete'), controlled('delete'))).to.deep.equal([0, 0, 0, 0]);
  });

  it('keeps the name and the color of a session until both are removed', () => {
    const prefs = (...given: { name?: string | null; color?: string | null }[]) =>
      rowsAfter(
        sessionsProjection,
        eventsOf(given.map((one) => sessionPrefSet.draft({ key: 'a:b', ...one }))),
      ).session_prefs.map(({ name, color }) => [name, color]);
    expect(prefs({ name: 'n' }, { color: 'red' })).to.deep.equal([['n', 'red']]);
    expect(prefs({ name: 'n', color: 'red' }, { name: null })).to.deep.equal([[null, 'red']]);
    expect(prefs({ name: 'n' }, { name: null })).to.deep.equal([]);
  });
});
