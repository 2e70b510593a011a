/** What is waiting for an agent, and how long it is kept in memory. */
import { expect } from 'chai';
import { kyselyRunBy } from '../../../infra/database/kysely.ts';
import { projections } from '../../../projections/index.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { type Projection, schemaOf } from '../../../projections/projection.ts';
import { createInboxes, INBOX, INBOX_NAMES, inboxOf } from '../../../queries/agents/heartbeat.ts';
import { agentStatusChanged } from '../../../shared/events/agents/agents.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { allTasks } from '../../../shared/identity.ts';
import { HOUR } from '../../../shared/time.ts';
import { sample } from '../../support/kit.ts';
import { plansOf, rowsOf } from '../../support/plans.ts';
import { agentRegisteredAs, readModels, secondsOf } from '../../support/rows.ts';

const silent = (agentId: number) =>
  sample(agentStatusChanged, {
    agent_id: agentId,
    name: `agent ${agentId}`,
    from: 'idle',
    to: 'offline',
    cause: 'sweep',
  });
const message = (messageId: number, toAgentId: number) =>
  sample(agentMessageSent, {
    message_id: messageId,
    from: 'eve',
    to: 'ada',
    from_agent_id: null,
    to_agent_id: toAgentId,
    content: 'hello',
    message_type: 'text',
  });
/** Unix seconds. */
const NOW = secondsOf(1_000);
const elsewhere = { workspace: 2 };

const ADA = { id: 1, name: 'ada' };

describe('heartbeat queries', () => {
  const models = readModels(projections);
  before(async () => {
    // Offline agents are reported to the recipient "system": an agent of that name reads what a person would.
    await models.tell(
      agentRegisteredAs(1, 'ada'),
      agentRegisteredAs(2, 'system'),
      [agentRegisteredAs(3, 'ada'), elsewhere],
      message(1, 1),
      message(2, 1),
      [message(3, 1), elsewhere],
      ...[11, 12, 13, 14, 15, 16].map(silent),
      [silent(17), elsewhere],
    );
    const activities = [
      [101, 1, 'task_assigned', 'ada has a task', NOW - 100],
      [102, 1, 'task_created', 'for ada', NOW - 50],
      [103, 1, 'task_assigned', 'for somebody else', NOW],
      [104, 1, 'task_assigned', 'old, for ada', NOW - 4 * HOUR],
      [105, 1, 'agent_created', 'ada is here', NOW],
      [106, 2, 'high_priority_alert', 'ada elsewhere', NOW],
    ];
    for (const [id, workspace, type, description, at] of activities)
      await models.query(
        `INSERT INTO ${schemaOf(activitiesProjection)}.activities (workspace_id, id, type, entity_type, entity_id, actor, description, created_at, position)
         VALUES ($2, $1, $3, 'task', 1, 'eve', $4, $5, $1)`,
        [id, workspace, type, description, at],
      );
  });

  it('return unread messages to the agent, oldest first', async () => {
    const inbox = await inboxOf(models.reads, allTasks(1), ADA, NOW);
    expect(inbox.agent).to.deep.equal({ id: 1, name: 'ada' });
    expect(inbox.messages.map(({ id }) => id)).to.deep.equal([1, 2]);
    expect(inbox.pendingTasks).to.deep.equal([]);
    expect((await inboxOf(models.reads, allTasks(3), ADA, NOW)).messages, 'of another workspace').to.deep.equal([]);
  });

  it('return urgent activities that name the agent, newest first, from the last four hours', async () => {
    const inbox = await inboxOf(models.reads, allTasks(1), ADA, NOW);
    expect(inbox.workItems.map(({ type }) => type)).to.deep.equal(['notifications', 'urgent_activities']);
    expect(inbox.workItems.slice(1)).to.deep.equal([
      {
        type: 'urgent_activities',
        count: 2,
        items: [
          { id: 102, type: 'task_created', description: 'for ada', created_at: NOW - 50 },
          { id: 101, type: 'task_assigned', description: 'ada has a task', created_at: NOW - 100 },
        ],
      },
    ]);
    expect(inbox.until).to.equal(NOW - 100 + 4 * HOUR);
    expect((await inboxOf(models.reads, allTasks(1), { id: 2, name: 'system' }, NOW)).until).to.equal(
      Number.MAX_SAFE_INTEGER,
    );
  });

  it('look at urgent activities only, however many others there are', async () => {
    await models.query(
      `INSERT INTO ${schemaOf(activitiesProjection)}.activities (workspace_id, id, type, entity_type, entity_id, actor, description, created_at, position)
       SELECT 1, n, 'agent_heartbeat', 'agent', n, 'x', 'Heartbeat of agent ' || n, $1, n FROM generate_series(1000, 6000) n`,
      [NOW],
    );
    try {
      const plans = await plansOf(models.reads, (reads) => inboxOf(reads, allTasks(1), ADA, NOW));
      const scans = plans.filter((one) => one['Relation Name'] === 'activities');
      expect(scans, JSON.stringify(scans)).to.have.length(1);
      expect(rowsOf(scans)).to.equal(3);
    } finally {
      await models.query(`DELETE FROM ${schemaOf(activitiesProjection)}.activities WHERE id >= 1000`, []);
    }
  });

  it('return no urgent activities from before the agent had its name', async () => {
    const since = (position: number) =>
      models.query(
        `UPDATE ${schemaOf(notificationsProjection)}.name_owners SET since = $1 WHERE workspace_id = 1 AND name = 'ada'`,
        [position],
      );
    try {
      for (const [position, ids] of [
        [101, [102, 101]],
        [102, [102]],
        [103, undefined],
      ] as const) {
        await since(position);
        const { workItems } = await inboxOf(models.reads, allTasks(1), ADA, NOW);
        const urgent = workItems.find(({ type }) => type === 'urgent_activities');
        expect(
          urgent?.items.map(({ id }) => id),
          `since ${position}`,
        ).to.deep.equal(ids);
      }
    } finally {
      await since(1);
    }
  });

  it('return the number of unread notifications and the newest five', async () => {
    const inbox = await inboxOf(models.reads, allTasks(1), { id: 2, name: 'system' }, NOW);
    expect(inbox.workItems).to.have.length(1);
    const [group] = inbox.workItems ?? [];
    expect(group).to.include({ type: 'notifications', count: 6 });
    expect(group?.items.map(({ id }) => id)).to.deep.equal([12, 11, 10, 9, 8]);
    expect(group?.items[0]).to.deep.equal({
      id: 12,
      type: 'heartbeat',
      title: 'Agent offline: agent 16',
      message: 'Agent agent 16 gave no sign of life and was set offline (it was idle).',
      created_at: secondsOf(12),
    });
  });

  it('return the newest fifty messages at most, the oldest of them first', async () => {
    await models.tell([agentRegisteredAs(4, 'busy'), { workspace: 4 }]);
    await models.tell(...Array.from({ length: 51 }, (_, n) => [message(500 + n, 4), { workspace: 4 }] as const));
    const inbox = await inboxOf(models.reads, allTasks(4), { id: 4, name: 'busy' }, NOW);
    expect(inbox.messages.map(({ id }) => id)).to.deep.equal(Array.from({ length: 50 }, (_, n) => 501 + n));
  });

  it('read only tables that say which agents their rows concern, and all of those', async () => {
    const read = new Set<string>();
    const find = (node: unknown): void => {
      if (typeof node !== 'object' || node === null) return;
      const { kind, schema, identifier } = node as Record<string, { readonly name?: string } | undefined>;
      if (String(kind) === 'SchemableIdentifierNode' && schema) read.add(`${schema.name}.${identifier?.name}`);
      for (const one of Object.values(node)) find(one);
    };
    const db = kyselyRunBy(async ({ query }) => {
      find(query);
      return { rows: [{ unread: 0, by_agents: [1] }] };
    });
    for (const agent of [null, ADA, { ...ADA, id: null }])
      await inboxOf({ ...models.reads, db }, { workspace: 1, agent }, ADA, NOW);
    const declared = [...INBOX.tables, ...INBOX_NAMES.tables].map(({ projection, table }) => {
      const { name, version, tables } = projections.find((one) => one.name === projection) as Projection;
      expect(tables.find((one) => one.name === table)?.concerns, `${projection}.${table}`).to.be.a('function');
      return `${schemaOf({ name, version })}.${table}`;
    });
    expect([...read].sort()).to.deep.equal(declared.sort());
  });

  it('are cached until something changes or an activity becomes too old', async () => {
    let now = NOW;
    let value = 'first';
    const asked: unknown[] = [];
    const inboxes = createInboxes({
      reads: models.reads,
      now: () => now * 1_000,
      freshness: {
        async stampFor({ workspace }, { models }, { since }, earlier) {
          asked.push([models, workspace, since]);
          return { value, position: 1, isCurrent: earlier?.value === value };
        },
      },
    });
    const seen = new Set<unknown>();
    /** Whether it was read earlier. */
    const kept = async (agent = ADA, workspace = 1) => {
      const inbox = await inboxes.find(allTasks(workspace), agent, 5);
      return seen.has(inbox) || !seen.add(inbox);
    };
    expect(await kept()).to.equal(false);
    expect(await kept()).to.equal(true);
    const [read, of, since] = asked[0] as [string[], number, number];
    expect(read).to.include.members(['notifications', 'chat']);
    expect([of, since]).to.deep.equal([1, 5]);
    expect(await kept({ id: 1, name: 'eve' }), 'after it was renamed').to.equal(false);
    expect(await kept(ADA, 2), 'of another workspace').to.equal(false);
    value = 'second';
    expect(await kept()).to.equal(false);
    now = NOW - 100 + 4 * HOUR - 1;
    expect(await kept()).to.equal(true);
    now += 1;
    expect(await kept(), 'an activity is too old').to.equal(false);
    expect(await kept()).to.equal(true);
  });
});
