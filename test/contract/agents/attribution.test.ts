/** Attribution through HTTP: who may read it, what is refused, and what is in it. */
import { expect } from 'chai';
import { type AttributionResponse, attributionResponse } from '../../../shared/contract/agents/attribution.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

describe('attribution', () => {
  const world = fixture(startAgentsWorld);

  const { ask, create } = world;
  const auth = () => world.world;
  const pathOf = (id: number | string, query = '') => `/api/agents/${id}/attribution${query && `?${query}`}`;
  const named = (name: string) => ({ 'x-agent-name': name });

  /** Of a page of the window that ends at `until`, Unix seconds. */
  const cursorOf = (number: string, until: number, hours = 24) =>
    Buffer.from(JSON.stringify([number, until, hours, 1, until, 1])).toString('base64url');

  /** As the agent itself would ask. */
  async function reportOf(
    agent: { readonly id: number; readonly name: string },
    query = '',
  ): Promise<AttributionResponse> {
    return conforms(
      attributionResponse,
      await ask('GET', pathOf(agent.id, query), undefined, undefined, named(agent.name)),
    ) as AttributionResponse;
  }

  it('is available to the agent itself, and to admins with privileged=1', async () => {
    const { id, name } = await create();
    await auth().makeNamesake(name);
    for (const reply of [
      await ask('GET', pathOf(id), undefined, await auth().makeKey(id, ['viewer', 'agent:self'])),
      await ask('GET', pathOf(name, 'privileged=1'), undefined, undefined, named(name)),
      await ask('GET', pathOf(id), undefined, await auth().signIn(name), named('another-agent')),
    ]) {
      conforms(attributionResponse, reply);
      expect(reply.body).to.include({ agent_name: name, access_scope: 'self' });
      expect(reply.body).to.have.all.keys(
        ...['agent_name', 'timeframe', 'access_scope', 'identity', 'audit', 'mutations', 'cost'],
      );
      const { hours, since, until } = reply.body.timeframe;
      expect([hours, until - since]).to.deep.equal([24, 24 * 3_600]);
      expect(until).to.be.closeTo(Date.now() / 1_000, 30);
    }
    const privileged = conforms(attributionResponse, await ask('GET', pathOf(id, 'privileged=1')));
    expect(privileged).to.include({ agent_name: name, access_scope: 'privileged' });
    expect(bodyOf(await ask('GET', pathOf(id)), 403).error).to.include(name);
  });

  it('checks for an unknown agent first, then for the caller, then for the query', async () => {
    const { id, name } = await create();
    const bad = 'hours=0&section=all';
    expect((await ask('GET', pathOf('unknown-agent', bad))).status).to.equal(404);
    expect((await ask('GET', pathOf(id, bad))).status).to.equal(403);
    const now = Math.floor(Date.now() / 1_000);
    const refusals: readonly (readonly [string, RegExp])[] = [
      [bad, /^hours: must be a whole number from 1 to 720$/],
      ['section=all', /^section: unknown: "all"; known are identity, audit, mutations, cost$/],
      ['cursor=next', /^cursor: must be/],
      [`cursor=${cursorOf('cost.nothing', now)}`, /^cursor: must be/],
      [`cursor=${cursorOf('prices', now)}`, /^cursor: must be/],
      [`cursor=${cursorOf('cost.by_model.\0', now)}`, /^cursor: must be/],
      [`cursor=${cursorOf('cost.total', now, 721)}`, /^cursor: must be/],
      [`cursor=${cursorOf('cost.total', now - 721 * 3_600)}`, /^cursor: is too old/],
    ];
    for (const [query, says] of refusals) {
      const reply = await ask('GET', pathOf(id, query), undefined, undefined, named(name));
      expect(bodyOf(reply, 400).error, query).to.match(says);
    }
  });

  it('separates actions by the key, by callers that name the agent, and by the agent’s own calls', async () => {
    const agent = await create({ session_key: world.fresh('session'), soul_content: 'calm', config: { a: 1 } });
    const { id, name } = agent;
    const key = await auth().makeKey(id, ['operator', 'agent:self']);
    const body = bodyOf(await ask('POST', '/api/tasks', { title: `by key ${name}`, assigned_to: name }, key), 201);
    const header = await ask('POST', '/api/tasks', { title: `by header ${name}` }, undefined, named(name));
    expect(header.status).to.equal(201);
    const taskId = body.task.id as number;
    const comment = await ask('POST', `/api/tasks/${taskId}/comments`, { content: 'done soon' }, key);
    expect(comment.status, JSON.stringify(comment.body)).to.equal(201);
    await ask('POST', `/api/agents/${id}/heartbeat`, {});
    const usage = { model: 'm', sessionId: `${name}:cli`, inputTokens: 1_000_000, outputTokens: 500_000 };
    expect((await ask('POST', '/api/tokens', usage)).status).to.equal(200);
    // Not the agent's doing, though its name is all over it.
    await ask('POST', '/api/tasks', { title: `${name} ${name}`, description: name });
    await ask('PUT', `/api/agents/${id}`, { role: `${name}’s role` });

    const report = await reportOf(agent, 'evidence=1');
    const { identity, audit, mutations, cost, evidence } = report;
    expect(identity).to.deep.include({
      id,
      name,
      session_key: '***',
      has_soul: true,
      config_keys: ['a'],
      lifetime_stats: { tasks_total: 1, tasks_completed: 0, tasks_active: 1, comments_authored: 1 },
    });
    expect(audit?.by_type).to.deep.equal({
      task_created: 2,
      agent_heartbeat: 1,
      agent_status_change: 1,
      comment_added: 1,
    });
    expect(audit?.total_activities).to.equal(5);
    const by = (type: string) =>
      audit?.activities.filter((one) => one.type === type).map(({ attributed_by }) => attributed_by);
    expect(by('task_created')).to.deep.equal(['header', 'key']);
    expect(by('agent_heartbeat')).to.deep.equal(['call']);
    expect(mutations?.task_mutations.map(({ entity_id }) => entity_id)).to.deep.equal([header.body.task.id, taskId]);
    expect(mutations?.comments[0]).to.deep.include({
      task_id: taskId,
      content: 'done soon',
      content_preview: 'done soon',
      task_title: `by key ${name}`,
    });
    expect(mutations?.status_changes.map(({ type }) => type)).to.deep.equal(['agent_status_change']);
    expect(mutations?.summary).to.deep.equal({
      task_mutations_count: 2,
      comments_count: 1,
      status_changes_count: 1,
    });
    const { total } = cost ?? {};
    expect(total).to.include({ requests: 1, input_tokens: 1_000_000, output_tokens: 500_000 });
    expect(total?.cost).to.be.greaterThan(0);
    expect(cost?.by_model).to.have.length(1);
    expect(cost?.by_model[0]).to.include({ model: 'm', request_count: 1, cost: total?.cost });
    expect(cost?.daily_trend[0]).to.include({ requests: 1, cost: total?.cost });

    for (const [number, { total: sum, events }] of Object.entries(evidence ?? {}))
      expect(
        events.reduce((all, { count }) => all + count, 0),
        number,
      ).to.equal(sum);
    // The positions are those of the log.
    const { eventLog } = auth().service.core;
    const logged = new Map<number, string>();
    for await (const batch of eventLog.readAll({ from: 0 }))
      for (const { position, type } of batch) logged.set(position, type);
    const typesOf = (number: string) => evidence?.[number]?.events.map(({ position }) => logged.get(position));
    expect(typesOf('audit.by_type.task_created')).to.deep.equal(['TaskCreated', 'TaskCreated']);
    expect(typesOf('identity.lifetime_stats.comments_authored')).to.deep.equal(['TaskCommented']);
    expect(typesOf('cost.total')).to.deep.equal(['TokensReported']);
    const number = 'audit.by_type.task_created';
    const first = (await reportOf(agent, 'evidence=1&limit=1')).evidence?.[number];
    const { evidence: second, ...rest } = await reportOf(agent, `limit=1&cursor=${first?.next}`);
    expect(rest).to.have.all.keys('agent_name', 'timeframe', 'access_scope');
    expect(second).to.have.all.keys(number);
    expect(second?.[number]).to.include({ total: 2, next: null });
    const pages = [...(first?.events ?? []), ...(second?.[number]?.events ?? [])];
    expect(pages).to.deep.equal(evidence?.[number]?.events);
  });

  it('follows a renamed agent, and does not pass to another agent of the same name', async () => {
    const first = await create();
    const key = await auth().makeKey(first.id, ['operator', 'agent:self']);
    await ask('POST', '/api/tasks', { title: 'before' }, key);
    const { name } = first;
    const renamed = await ask('PUT', `/api/agents/${first.id}`, { name: world.fresh('renamed') });
    expect(renamed.status).to.equal(200);
    const second = await create({ name });
    const body = conforms(attributionResponse, await ask('GET', pathOf(first.id, 'section=audit'), undefined, key));
    expect(body.audit.by_type).to.include({ task_created: 1 });
    expect((await reportOf(second, 'section=audit')).audit?.total_activities).to.equal(0);
  });
});
