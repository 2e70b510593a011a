import { expect } from 'chai';
import { searchProjection } from '../../../projections/monitoring/search.ts';
import { auditEntriesPurged } from '../../../shared/events/admin/cleanup.ts';
import { agentDeleted, agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../../shared/events/agents/heartbeat.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { signInFailed } from '../../../shared/events/auth/sign-in.ts';
import { userCreated, userDeleted } from '../../../shared/events/auth/users.ts';
import { pipelineCreated, pipelineDeleted, pipelineUpdated } from '../../../shared/events/pipelines/pipelines.ts';
import { type Draft, eventsOf, registeredAgent, rowsAfter } from '../../support/kit.ts';
import { at, created, deleted, placed, reviewed, TASK, updated } from '../../support/tasks.ts';

const BETWEEN = '\u001f';
const rows = (...drafts: readonly Draft[]) => rowsAfter(searchProjection, eventsOf(drafts));
/** Texts of the documents of a type, with `|` between fields. */
const texts = (type: string, ...drafts: readonly Draft[]) =>
  rows(...drafts)
    .documents.filter((row) => row.type === type)
    .map(({ text }) => text.replaceAll(BETWEEN, '|'));

const about = { agentId: 7, name: 'Scout' };
const registered = registeredAgent({
  ...about,
  role: 'Coder',
  soulContent: 'soul',
  config: { api_key: 'sk-secret' },
});
const beat = agentHeartbeatReceived.draft({
  ...about,
  lastActivity: 'Heartbeat received',
  connectionId: null,
  workItemsCount: 0,
  workItemTypes: [],
});
const changed = (changes: object) =>
  agentDetailsChanged.draft({ ...about, changes, via: 'name', writeToGateway: false, status: null });
const user = {
  userId: 3,
  username: 'bob',
  displayName: 'Bob Miller',
  email: 'bob@example.org',
  avatarUrl: null,
  role: 'viewer' as const,
  provider: 'local' as const,
  providerId: null,
  isApproved: true,
  tenant: 1,
  workspace: 1,
  credentialId: null,
  source: 'admin' as const,
};

describe('projection search', () => {
  it('an agent is found by name, role and last activity, as they are now', () => {
    expect(texts('agent', registered)).to.deep.equal(['scout|coder|']);
    expect(texts('agent', registered, beat)).to.deep.equal(['scout|coder|heartbeat received']);
    expect(texts('agent', registered, beat, changed({ role: 'Reviewer' }))).to.deep.equal([
      'scout|reviewer|heartbeat received',
    ]);
    expect(texts('agent', registered, changed({ name: 'Łucja', lastActivity: 'ÄÖ' }))).to.deep.equal([
      'łucja|coder|äö',
    ]);
    const gone = agentDeleted.draft({ ...about, role: 'Coder', removeWorkspace: false });
    expect(texts('agent', registered, gone)).to.deep.equal([]);
  });

  it('a heartbeat that says nothing new is one small row', () => {
    const { documents, phrases, phrase_uses } = rows(registered, beat, beat, beat);
    expect(phrases.map(({ text }) => text)).to.deep.equal([`heartbeat of scout: nothing to do${BETWEEN}scout`]);
    expect(phrase_uses.map(({ id, created_at }) => [id, created_at])).to.deep.equal([2, 3, 4].map((n) => [n, at(n)]));
    expect(new Set(phrase_uses.map(({ phrase }) => phrase))).to.deep.equal(new Set([phrases[0]?.phrase]));
    expect(documents.find(({ type }) => type === 'agent')).to.include({ position: 2, created_at: at(1) });
  });

  it('an audit entry that was removed is not found any more', () => {
    const sent = userDeleted.draft({ userId: 1, username: 'ada' });
    expect(texts('audit', sent)).to.have.length(1);
    const counts = [{ action: 'user_delete', count: 1 }];
    expect(texts('audit', sent, auditEntriesPurged.draft({ ids: [1], counts }))).to.deep.equal([]);
  });

  it('a message is found by content and sender', () => {
    const message = agentMessageSent.draft({
      messageId: 9,
      from: 'Ada',
      to: 'Scout',
      toAgentId: 7,
      content: `100%${BETWEEN}Sure`,
      messageType: 'text',
      secrets: { count: 0, types: [] },
    });
    expect(texts('message', message)).to.deep.equal(['100% sure|ada']);
    expect(rows(message).phrases[0]?.text).to.include('ada wrote to scout');
  });

  it('a task is found by title, description and assignee, as they are now', () => {
    const first = created({ description: 'Before RAIN' });
    expect(texts('task', first)).to.deep.equal(['mend the roof|before rain|']);
    expect(texts('task', first, updated({ assignedTo: 'Ann' }, { description: 'Before RAIN' }))).to.deep.equal([
      'mend the roof|before rain|ann',
    ]);
    expect(texts('task', first, updated({ description: null }))).to.deep.equal(['mend the roof||']);
    expect(texts('task', first, reviewed('approved'))).to.deep.equal(['mend the roof|before rain|']);
    const passedOn = {
      ...reviewed('rejected'),
      data: { ...reviewed('rejected').data, ...placed({}, { assignedTo: 'Eve' }) },
    };
    expect(texts('task', first, passedOn)).to.deep.equal(['mend the roof|before rain|eve']);
    expect(texts('task', first, deleted())).to.deep.equal([]);
    expect(texts('activity', created({ assignedTo: 'Eve' }))).to.deep.equal([
      `created task "${TASK.title.toLowerCase()}" for eve|ann`,
    ]);
  });

  it('a pipeline is found by name and description, as they are now', () => {
    const first = pipelineCreated.draft({ pipelineId: 5, name: 'Nightly', description: 'Every NIGHT', steps: [] });
    const renamed = pipelineUpdated.draft({ pipelineId: 5, name: 'Weekly' });
    expect(texts('pipeline', first)).to.deep.equal(['nightly|every night']);
    expect(texts('pipeline', first, renamed)).to.deep.equal(['weekly|every night']);
    expect(texts('pipeline', first, pipelineUpdated.draft({ pipelineId: 5, description: null }))).to.deep.equal([
      'nightly|',
    ]);
    expect(texts('pipeline', first, pipelineDeleted.draft({ pipelineId: 5 }))).to.deep.equal([]);
  });

  it('an audit entry is found by action, actor and detail', () => {
    expect(texts('audit', registered)).to.deep.equal([
      'agent_created|admin|{"name":"scout","role":"coder","via":"operator"}',
    ]);
  });

  it('what is personal stays out, and so do secrets', () => {
    const failed = signInFailed.draft({
      username: 'Bob@Example.org',
      userId: 3,
      reason: 'invalid_password',
      month: '2026-11',
    });
    const all = JSON.stringify(rows(registered, userCreated.draft(user), failed));
    expect(all).to.include('user_create').and.include('login_failed');
    for (const personal of ['miller', 'example.org', 'sk-secret', 'soul']) expect(all).not.to.include(personal);
  });

  it('has the same rows once the persons are erased', () => {
    const erased = userCreated.draft({ ...user, displayName: null, email: null });
    expect(rows(userCreated.draft(user))).to.deep.equal(rows(erased));
  });
});
