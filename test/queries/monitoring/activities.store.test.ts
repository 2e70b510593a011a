/** Activities and the audit trail: filters, totals, pages, statistics. */
import { expect } from 'chai';
import { projections } from '../../../projections/index.ts';
import { auditProjection } from '../../../projections/monitoring/audit.ts';
import { ACTIVITY_MODELS, activityStats, listActivities } from '../../../queries/monitoring/activities.ts';
import { listAudit } from '../../../queries/monitoring/audit.ts';
import { agentMessageSent } from '../../../shared/events/agents/messages.ts';
import { agentSoulChanged } from '../../../shared/events/agents/souls.ts';
import { userSignedIn } from '../../../shared/events/auth/sign-in.ts';
import { userDeleted } from '../../../shared/events/auth/users.ts';
import { allTasks } from '../../../shared/identity.ts';
import { sample } from '../../support/kit.ts';
import { agentRegisteredAs, readModels, secondsOf } from '../../support/rows.ts';

const registered = agentRegisteredAs(7, 'ada');
const soul = sample(agentSoulChanged, { agent_id: 7, name: 'ada', soul_content: 'calm' });
const message = sample(agentMessageSent, {
  message_id: 1,
  from: 'eve',
  to: 'bob',
  to_agent_id: 8,
  content: 'hello',
  message_type: 'text',
});
const by = (id: number, name: string) => ({ actor: { type: 'user' as const, id, name } });
const elsewhere = { workspace: 2 };

describe('activity queries', () => {
  const models = readModels(
    projections.filter(({ name }) => ACTIVITY_MODELS.includes(name)),
    () => [registered, soul, message, [soul, by(2, 'bea')], [soul, elsewhere], soul],
  );

  const list = (query: object = {}, workspace = 1) =>
    listActivities(models.reads, allTasks(workspace), { limit: 50, offset: 0, ...query } as Parameters<
      typeof listActivities
    >[2]);
  const ids = async (query?: object) => {
    const { activities, total } = await list(query);
    return [activities.map(({ id }) => id), total];
  };

  it('list activities newest first, each with the current state of its subject', async () => {
    const { activities, total, hasMore } = await list();
    expect(activities.map(({ id }) => id)).to.deep.equal([6, 4, 3, 2, 1]);
    expect({ total, hasMore }).to.deep.equal({ total: 5, hasMore: false });
    const data = { content_length: 4, previous_content_length: 0, saved_to_workspace: false };
    expect(activities[0]).to.deep.equal({
      id: 6,
      type: 'agent_soul_updated',
      entity_type: 'agent',
      entity_id: 7,
      actor: 'admin',
      description: 'Updated the soul of ada',
      metadata: data,
      data,
      created_at: secondsOf(6),
      workspace_id: 1,
      entity: { type: 'agent', id: 7, name: 'ada', role: 'coder', status: 'idle' },
    });
    expect(activities[2]?.entity, 'bob is gone').to.equal(null);
    const [other] = (await list({}, 2)).activities;
    expect([other?.id, other?.entity], 'ada is an agent of another workspace').to.deep.equal([5, null]);
  });

  it('filter by types, actor, kind of entity and time, and the total counts the matches', async () => {
    expect(await ids({ type: 'agent_message' })).to.deep.equal([[3], 1]);
    expect(await ids({ type: ' agent_message , ,agent_soul_updated ' })).to.deep.equal([[6, 4, 3, 2], 4]);
    expect(await ids({ type: ' , ' })).to.deep.equal([[6, 4, 3, 2, 1], 5]);
    expect(await ids({ actor: 'bea' })).to.deep.equal([[4], 1]);
    expect(await ids({ entity_type: 'agent', limit: 1 })).to.deep.equal([[6], 5]);
    expect(await ids({ entity_type: 'task' })).to.deep.equal([[], 0]);
    expect(await ids({ since: secondsOf(3) })).to.deep.equal([[6, 4], 2]);
    const since = secondsOf(1);
    expect(await ids({ since, type: 'agent_message' })).to.deep.equal([[3], 1]);
    expect(await ids({ since, type: 'agent_message,agent_soul_updated' })).to.deep.equal([[6, 4, 3, 2], 4]);
    expect(await ids({ since, actor: 'bea' })).to.deep.equal([[4], 1]);
    expect(await ids({ since, entity_type: 'task' })).to.deep.equal([[], 0]);
    expect(await list({ since }, 2)).to.deep.include({ total: 1 });
  });

  it('return pages that show whether there are more', async () => {
    const page = async (query: object) => {
      const { activities, hasMore } = await list(query);
      return [activities.map(({ id }) => id), hasMore];
    };
    expect(await page({ limit: 2 })).to.deep.equal([[6, 4], true]);
    expect(await page({ limit: 2, offset: 3 })).to.deep.equal([[2, 1], false]);
    expect(await page({ limit: 2, offset: 2 })).to.deep.equal([[3, 2], true]);
    expect(await page({ limit: 2, offset: 9 })).to.deep.equal([[], false]);
  });

  it('return the same activities on deep pages, which are read from the nearer end', async () => {
    const many = { workspace: 3 };
    await models.tell(...Array.from({ length: 2_305 }, () => [soul, many] as const));
    const whole = async (query: object) => {
      const { activities, total, hasMore } = await list(query, 3);
      const numbers = activities.map(({ id }) => id);
      return { first: numbers[0], last: numbers.at(-1), count: numbers.length, total, hasMore };
    };
    const newest = (await whole({ limit: 1 })).first as number;
    for (const offset of [999, 1_000, 1_001, 1_151, 1_152, 1_153, 1_500, 2_290, 2_300, 2_304]) {
      const count = Math.min(10, 2_305 - offset);
      expect(await whole({ limit: 10, offset }), `from ${offset}`).to.deep.equal({
        first: newest - offset,
        last: newest - offset - count + 1,
        count,
        total: 2_305,
        hasMore: offset + count < 2_305,
      });
    }
    for (const offset of [2_305, 5_000])
      expect(await whole({ limit: 10, offset })).to.include({ count: 0, total: 2_305, hasMore: false });
    expect((await list({ type: 'nothing', limit: 10, offset: 2_000 }, 3)).total).to.equal(0);
  });

  it('count by type, actor and hour over the last hours', async () => {
    const hour = 1_700_002_800;
    const at = (seconds: number) => ({ workspace: 4, at: seconds * 1_000 });
    await models.tell(
      [soul, at(hour - 10)],
      [soul, { ...at(hour + 1), ...by(2, 'bea') }],
      [soul, at(hour + 2)],
      [message, at(hour + 3)],
      [registered, { ...at(hour + 4), ...by(2, 'bea') }],
    );
    expect(await activityStats(models.reads, allTasks(4), 2, hour + 3_600)).to.deep.equal({
      timeframe: '2 hours',
      activityByType: [
        { type: 'agent_soul_updated', count: 3 },
        { type: 'agent_created', count: 1 },
        { type: 'agent_message', count: 1 },
      ],
      topActors: [
        { actor: 'admin', activity_count: 2 },
        { actor: 'bea', activity_count: 2 },
        { actor: 'eve', activity_count: 1 },
      ],
      timeline: [
        { timestamp: hour - 3_600, count: 1, hour: '2023-11-14T22:00:00.000Z' },
        { timestamp: hour, count: 4, hour: '2023-11-14T23:00:00.000Z' },
      ],
    });
    const recent = await activityStats(models.reads, allTasks(4), 1, hour + 3_602);
    expect(
      recent.timeline.map(({ count }) => count),
      'after the beginning of the window',
    ).to.deep.equal([2]);
    const actors = Array.from(
      { length: 12 },
      (_, n) => [soul, { ...at(hour), workspace: 5, ...by(n, `a${n}`) }] as const,
    );
    await models.tell(...actors);
    expect((await activityStats(models.reads, allTasks(5), 1, hour + 5)).topActors).to.have.length(10);
  });
});

describe('audit trail queries', () => {
  const signedIn = userSignedIn.draft({ user_id: 7, username: 'bob', method: 'password' });
  const deleted = userDeleted.draft({ user_id: 7, username: 'bob' });
  const models = readModels([auditProjection], () => [
    [signedIn, { ...by(7, 'bob'), ip: '192.0.2.7', userAgent: 'curl/8' }],
    signedIn,
    deleted,
    [deleted, elsewhere],
    [deleted, by(2, 'bea')],
  ]);

  const list = (query: object = {}, workspace = 1) =>
    listAudit(models.reads, workspace, { limit: 100, offset: 0, ...query } as Parameters<typeof listAudit>[2]);
  const ids = async (query?: object) => {
    const { entries, total } = await list(query);
    return [entries.map(({ id }) => id), total];
  };

  it('list entries newest first', async () => {
    const { entries, ...rest } = await list();
    expect(entries.map(({ id }) => id)).to.deep.equal([5, 3, 2, 1]);
    expect(entries[3]).to.deep.equal({
      id: 1,
      action: 'login',
      actor: 'bob',
      actor_id: 7,
      target_type: 'user',
      target_id: 7,
      detail: null,
      ip_address: '192.0.2.7',
      user_agent: 'curl/8',
      via: null,
      created_at: secondsOf(1),
      workspace_id: 1,
    });
    expect(rest).to.deep.equal({ total: 4, limit: 100, offset: 0 });
    expect((await list({}, 2)).entries.map(({ id }) => id)).to.deep.equal([4]);
    expect(await list({}, 9)).to.deep.equal({ entries: [], total: 0, limit: 100, offset: 0 });
  });

  it('filter by action, actor and an inclusive time range, and page the result', async () => {
    expect(await ids({ action: 'login' })).to.deep.equal([[2, 1], 2]);
    expect(await ids({ actor: 'bea' })).to.deep.equal([[5], 1]);
    expect(await ids({ action: 'login', actor: 'bob' })).to.deep.equal([[1], 1]);
    expect(await ids({ since: secondsOf(3) })).to.deep.equal([[5, 3], 2]);
    expect(await ids({ until: secondsOf(2) })).to.deep.equal([[2, 1], 2]);
    expect(await ids({ since: secondsOf(2), until: secondsOf(3) })).to.deep.equal([[3, 2], 2]);
    expect(await ids({ since: secondsOf(1), action: 'user_delete' })).to.deep.equal([[5, 3], 2]);
    expect(await ids({ since: secondsOf(1), actor: 'bea' })).to.deep.equal([[5], 1]);
    expect(await list({ since: secondsOf(1) }, 2)).to.include({ total: 1 });
    expect(await ids({ limit: 2, offset: 1 })).to.deep.equal([[3, 2], 4]);
  });

  it('return the same entries on deep pages, which are read from the nearer end', async () => {
    const ENTRIES = 1_060;
    const many = Array.from(
      { length: ENTRIES },
      (_, n) => [n % 3 === 2 ? deleted : signedIn, { workspace: 3 }] as const,
    );
    await models.tell(...many);
    // The ids are the numbers of the events, of which five came before.
    const all = many.map((_, n) => ENTRIES + 5 - n);
    const deletions = all.filter((id) => (id - 5) % 3 === 0);
    const pages = [0, 999, 1_000, 1_030, 1_058, 1_060, 9_999].map((offset) => ({ offset, limit: 3 }));
    for (const page of [...pages, { offset: 1_030, limit: 200 }]) {
      const { entries, total } = await list(page, 3);
      const expected = all.slice(page.offset, page.offset + page.limit);
      expect([entries.map(({ id }) => id), total], JSON.stringify(page)).to.deep.equal([expected, ENTRIES]);
    }
    for (const offset of [0, 350, 1_200]) {
      const { entries, total } = await list({ action: 'user_delete', offset, limit: 10 }, 3);
      const expected = deletions.slice(offset, offset + 10);
      expect([entries.map(({ id }) => id), total], `${offset}`).to.deep.equal([expected, deletions.length]);
    }
  });
});
