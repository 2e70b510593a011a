import { expect } from 'chai';
import { searchProjection } from '../../../projections/monitoring/search.ts';
import { auditEntriesPurged } from '../../../shared/events/admin/cleanup.ts';
import { agentDeleted, agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../../shared/events/agents/heartbeat.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { signInFailed } from '../../../shared/events/auth/sign-in.ts';
import { userCreated, userDeleted } from '../../../shared/events/auth/users.ts';
import { pipelineCreated, pipelineDeleted, pipelineUpdated } from '../../../shared/events/pipelines/pipelines.ts';
import { newUser } from '../../support/ann.ts';
import { type Draft, eventsOf, registeredAgent, rowsAfter, sample } from '../../support/kit.ts';
import { at, created, deleted, placed, reviewed, TASK, updated } from '../../support/tasks.ts';

const BETWEEN = '\u001f';
const rows = (...drafts: readonly Draft[]) => rowsAfter(searchProjection, eventsOf(drafts));
/** Texts of the documents of a type, with `|` between fields. */
const texts = (type: string, ...drafts: readonly Draft[]) =>
  rows(...drafts)
    .documents.filter((row) => row.type === type)
    .map(({ text }) => text.replaceAll(BETWEEN, '|'));

const about = { agent_id: 7, name: 'Scout' };
const registered = registeredAgent({
  ...about,
  role: 'Coder',
  soul_content: 'soul',
  config: { api_key: 'sk-secret' },
});
const beat = sample(agentHeartbeatReceived, { ...about, last_activity: 'Heartbeat received' });
const changed = (changes: object) =>
  agentDetailsChanged.draft({ ...about, changes, via: 'name', write_to_gateway: false, status: null });
const user = {
  ...newUser('bob', { display_name: 'Bob Miller', email: 'bob@example.org' }),
  user_id: 3,
  credential_id: null,
};

describe('projection search', () => {
  it('finds an agent by its current name, role and last activity', () => {
    expect(texts('agent', registered)).to.deep.equal(['scout|coder|']);
    expect(texts('agent', registered, beat)).to.deep.equal(['scout|coder|heartbeat received']);
    expect(texts('agent', registered, beat, changed({ role: 'Reviewer' }))).to.deep.equal([
      'scout|reviewer|heartbeat received',
    ]);
    expect(texts('agent', registered, changed({ name: 'Łucja', last_activity: 'ÄÖ' }))).to.deep.equal([
      'łucja|coder|äö',
    ]);
    const gone = agentDeleted.draft({ ...about, role: 'Coder', remove_workspace: false });
    expect(texts('agent', registered, gone)).to.deep.equal([]);
  });

  it('stores an unchanged heartbeat as one small row', () => {
    const { documents, phrases, phrase_uses } = rows(registered, beat, beat, beat);
    expect(phrases.map(({ text }) => text)).to.deep.equal([`heartbeat of scout: nothing to do${BETWEEN}scout`]);
    expect(phrase_uses.map(({ id, created_at }) => [id, created_at])).to.deep.equal([2, 3, 4].map((n) => [n, at(n)]));
    expect(new Set(phrase_uses.map(({ phrase }) => phrase))).to.deep.equal(new Set([phrases[0]?.phrase]));
    expect(documents.find(({ type }) => type === 'agent')).to.include({ position: 2, created_at: at(1) });
  });

  it('no longer finds an audit entry that was removed', () => {
    const sent = userDeleted.draft({ user_id: 1, username: 'ada' });
    expect(texts('audit', sent)).to.have.length(1);
    const counts = [{ action: 'user_delete', count: 1 }];
    expect(texts('audit', sent, auditEntriesPurged.draft({ ids: [1], counts }))).to.deep.equal([]);
  });

  it('finds a message by content and sender', () => {
    const message = sample(agentMessageSent, {
      message_id: 9,
      from: 'Ada',
      to: 'Scout',
      to_agent_id: 7,
      content: `100%${BETWEEN}Sure`,
      message_type: 'text',
    });
    expect(texts('message', message)).to.deep.equal(['100% sure|ada']);
    expect(rows(message).phrases[0]?.text).to.include('ada wrote to scout');
  });

  it('finds a task by its current title, description and assignee', () => {
    const first = created({ description: 'Before RAIN' });
    expect(texts('task', first)).to.deep.equal(['mend the roof|before rain|']);
    expect(texts('task', first, updated({ assigned_to: 'Ann' }, { description: 'Before RAIN' }))).to.deep.equal([
      'mend the roof|before rain|ann',
    ]);
    expect(texts('task', first, updated({ description: null }))).to.deep.equal(['mend the roof||']);
    expect(texts('task', first, reviewed('approved'))).to.deep.equal(['mend the roof|before rain|']);
    const passedOn = {
      ...reviewed('rejected'),
      data: { ...reviewed('rejected').data, ...placed({}, { assigned_to: 'Eve' }) },
    };
    expect(texts('task', first, passedOn)).to.deep.equal(['mend the roof|before rain|eve']);
    expect(texts('task', first, deleted())).to.deep.equal([]);
    expect(texts('activity', created({ assigned_to: 'Eve' }))).to.deep.equal([
      `created task "${TASK.title.toLowerCase()}" for eve|ann`,
    ]);
  });

  it('finds a pipeline by its current name and description', () => {
    const first = pipelineCreated.draft({ pipeline_id: 5, name: 'Nightly', description: 'Every NIGHT', steps: [] });
    const renamed = pipelineUpdated.draft({ pipeline_id: 5, name: 'Weekly' });
    expect(texts('pipeline', first)).to.deep.equal(['nightly|every night']);
    expect(texts('pipeline', first, renamed)).to.deep.equal(['weekly|every night']);
    expect(texts('pipeline', first, pipelineUpdated.draft({ pipeline_id: 5, description: null }))).to.deep.equal([
      'nightly|',
    ]);
    expect(texts('pipeline', first, pipelineDeleted.draft({ pipeline_id: 5 }))).to.deep.equal([]);
  });

  it('finds an audit entry by action, actor and detail', () => {
    expect(texts('audit', registered)).to.deep.equal([
      'agent_created|admin|{"name":"scout","role":"coder","via":"operator"}',
    ]);
  });

  it('contains no personal data and no secrets', () => {
    const failed = signInFailed.draft({
      username: 'Bob@Example.org',
      user_id: 3,
      reason: 'invalid_password',
      month: '2026-11',
    });
    const all = JSON.stringify(rows(registered, userCreated.draft(user), failed));
    expect(all).to.include('user_create').and.include('login_failed');
    for (const personal of ['miller', 'example.org', 'sk-secret', 'soul']) expect(all).not.to.include(personal);
  });

  it('has the same rows after the people are erased', () => {
    const erased = userCreated.draft({ ...user, display_name: null, email: null });
    expect(rows(userCreated.draft(user))).to.deep.equal(rows(erased));
  });
});
