import { expect } from 'chai';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { recordsPurged } from '../../../shared/events/admin/cleanup.ts';
import { agentHidden } from '../../../shared/events/agents/agents.ts';
import { agentMemoryFieldsSet } from '../../../shared/events/agents/memory.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { agentSoulChanged } from '../../../shared/events/agents/souls.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { seconds } from '../../../shared/time.ts';
import { type Draft, eventsOf, rowsAfter, sample, timeOf } from '../../support/kit.ts';

const soul = sample(agentSoulChanged, { agent_id: 7, name: 'ada', soul_content: 'calm' });
const rows = (drafts: readonly Draft[], meta = {}) => rowsAfter(activitiesProjection, eventsOf(drafts, meta));

describe('projection activities', () => {
  it('has a row with the number of the event for each activity', () => {
    expect(rows([soul]).activities).to.deep.equal([
      {
        workspace_id: 1,
        id: 1,
        type: 'agent_soul_updated',
        entity_type: 'agent',
        entity_id: 7,
        actor: 'admin',
        description: 'Updated the soul of ada',
        data: { content_length: 4, previous_content_length: 0, saved_to_workspace: false },
        created_at: seconds(timeOf(1)),
        position: 1,
      },
    ]);
  });
  it('has no rows for other events', () => {
    expect(rows([agentHidden.draft({ agent_id: 7, name: 'ada' })]).activities).to.deep.equal([]);
    const alongside = sample(agentMemoryFieldsSet, { agent_id: 7, name: 'ada', announced: true });
    expect(rows([alongside]), 'announced by another event of the same append').to.deep.equal({
      activities: [],
      activity_counts: [],
      activity_hours: [],
      open_hour: [],
    });
  });
  it('counts by type, actor and kind of entity', () => {
    const message = sample(agentMessageSent, {
      message_id: 1,
      from: 'ada',
      to: 'bob',
      to_agent_id: 8,
      content: 'hello',
      message_type: 'text',
    });
    const { activities, activity_counts } = rows([soul, message, soul]);
    expect(activities.map(({ id }) => id)).to.deep.equal([1, 2, 3]);
    expect(activity_counts).to.deep.equal([
      { workspace_id: 1, type: 'agent_soul_updated', actor: 'admin', entity_type: 'agent', count: 2, position: 3 },
      { workspace_id: 1, type: 'agent_message', actor: 'ada', entity_type: 'agent', count: 1, position: 2 },
    ]);
  });
  it('counts by actor, hour and type, including activities removed from the list', () => {
    const hour = Date.UTC(2026, 2, 1, 10);
    const at = (time: number) => eventsOf([soul], { at: time })[0] as DomainEvent;
    const purge = recordsPurged.draft({ table: 'activities', ids: [1], counts: [], phrases: [] });
    const times = [hour, hour + 3_599_999, hour + 3_600_000];
    const events = [
      ...times.map((time, n) => ({ ...at(time), position: n + 1 })),
      { ...(eventsOf([purge])[0] as DomainEvent), position: 9 },
    ];
    expect(rowsAfter(activitiesProjection, events).activity_hours).to.deep.equal([
      { workspace_id: 1, actor: 'admin', start: hour / 1_000, type: 'agent_soul_updated', count: 2, position: 2 },
      {
        workspace_id: 1,
        actor: 'admin',
        start: hour / 1_000 + 3_600,
        type: 'agent_soul_updated',
        count: 1,
        position: 3,
      },
    ]);
  });
  it('separates workspaces', () => {
    const { activities, activity_counts } = rowsAfter(activitiesProjection, [
      ...eventsOf([soul], { workspace: 1 }),
      ...eventsOf([soul, soul], { workspace: 2 }).slice(1),
    ]);
    expect(activities.map(({ workspace_id }) => workspace_id)).to.deep.equal([1, 2]);
    expect(activity_counts.map(({ workspace_id, count }) => [workspace_id, count])).to.deep.equal([
      [1, 1],
      [2, 1],
    ]);
  });
});
