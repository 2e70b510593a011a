/** What events tell webhooks. */
import { expect } from 'chai';
import { z } from 'zod';
import { agentStatusChanged } from '../../shared/events/agents/agents.ts';
import { signInFailed } from '../../shared/events/auth/sign-in.ts';
import { userDeleted } from '../../shared/events/auth/users.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { type DomainEvent, defineEvent, type EventDefinition } from '../../shared/events/define.ts';
import { isChosen, MESSAGE_EVENTS, messagesOf } from '../../shared/events/webhooks/messages.ts';
import { MASK } from '../../shared/secrets.ts';
import { type Draft, eventsOf, sample } from '../support/kit.ts';

const told = (draft: Draft, definition = catalogue.get(draft.type) as EventDefinition) =>
  messagesOf(definition, eventsOf([draft], { workspace: 7 })[0] as DomainEvent);

const status = (fields: object) =>
  sample(agentStatusChanged, {
    agent_id: 3,
    name: 'ann',
    from: 'idle',
    to: 'busy',
    cause: 'heartbeat',
    seen: true,
    ...fields,
  });

describe('webhook messages', () => {
  it('report a failed sign-in without the typed username', () => {
    for (const userId of [null, 7]) {
      const failed = signInFailed.draft({
        username: 'my-p4ssword',
        user_id: userId,
        reason: 'user_not_found',
        month: '2026-03',
      });
      const [message, ...others] = told(failed);
      expect(others).to.deep.equal([]);
      expect(message?.type).to.equal('security.login_failed');
      expect(message?.data).to.include({ action: 'login_failed', actor: null, target_id: userId });
      expect(JSON.stringify(message)).to.not.include('my-p4ssword');
    }
  });

  it('contain a status as a status and an activity, and an error also under its own type, for any call', () => {
    expect(told(status({})).map(({ type }) => type)).to.deep.equal([
      'agent.status_change',
      'activity.agent_status_change',
    ]);
    for (const change of [{ cause: 'heartbeat' }, { cause: 'update' }, { cause: 'heartbeat', announced: true }]) {
      const errors = told(status({ to: 'error', last_activity: 'no network', ...change })).filter(
        ({ type }) => type === 'agent.error',
      );
      expect(
        errors.map(({ data }) => ({ ...data, last_seen: 0 })),
        JSON.stringify(change),
      ).to.deep.equal([
        { id: 3, name: 'ann', status: 'error', last_activity: 'no network', last_seen: 0, workspace_id: 7 },
      ]);
    }
  });

  it('have stable ids, which differ between the messages of an event', () => {
    const [one, again] = [told(status({ to: 'error' })), told(status({ to: 'error' }))];
    expect(one).to.deep.equal(again);
    expect(new Set(one.map(({ id }) => id)).size).to.equal(one.length);
    for (const { id } of one) expect(id, 'a dot would end the id in what is signed').to.match(/^msg_[\w-]+$/);
  });

  it('contain the workspace, and mask secrets', () => {
    const reported = defineEvent({
      type: 'Reported',
      version: 1,
      doc: '',
      schema: z.object({}),
      frames: () => [
        { type: 'task.updated', data: { id: 1, metadata: { apiKey: 'very-private' } }, secrets: ['metadata'] },
      ],
      webhooks: () => [{ type: 'alert.triggered', data: { rule: 1 } }],
    });
    const messages = told(reported.draft({}), reported as unknown as EventDefinition);
    expect(messages.map(({ type, data }) => ({ type, data }))).to.deep.equal([
      { type: 'activity.task_updated', data: { id: 1, metadata: { apiKey: MASK }, workspace_id: 7 } },
      { type: 'alert.triggered', data: { rule: 1, workspace_id: 7 } },
    ]);
  });

  it('include created and deleted users, although the live stream has no frame for them', () => {
    const draft = userDeleted.draft({ user_id: 4, username: 'bob' } as never);
    const [message] = told(draft);
    expect(message?.type).to.equal('security.user_deleted');
    expect(message?.data).to.include({ action: 'user_deleted', actor: 'admin', workspace_id: 7 });
  });

  it('are selected by full type names, or all at once', () => {
    expect(isChosen(['*'], 'agent.error')).to.equal(true);
    expect(isChosen(['agent.error'], 'agent.error')).to.equal(true);
    for (const chosen of [[], ['agent'], ['agent.*'], ['agent.errors']]) {
      expect(isChosen(chosen, 'agent.error')).to.equal(false);
    }
  });

  it('are empty for every event type that is known to have none', () => {
    for (const [type, definition] of catalogue) {
      if (MESSAGE_EVENTS.has(type)) continue;
      const { frames, notification, activity, audit, webhooks } = definition;
      expect([frames, notification, activity, audit, webhooks], type).to.deep.equal(Array(5).fill(undefined));
    }
  });
});
