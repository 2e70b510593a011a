/** What refers to an agent: after its deletion, its death and a rename, and for a later agent of its name. */
import { expect } from 'chai';
import { projectStream } from '../../../commands/projects/projects.ts';
import { projectAgentsAssigned } from '../../../shared/events/projects/assignments.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { openStream } from '../../support/stream.ts';
import { testOrigin } from '../../support/world.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

describe('References to an agent', function () {
  this.timeout(60_000);
  const world = fixture(startAuthWorld);
  const ask = async (method: string, path: string, body?: unknown, as: string = world.adminKey) =>
    world.ask(method, path, { as, body });
  const made = async (name: string): Promise<{ id: number; key: string }> => {
    const { id } = bodyOf(await ask('POST', '/api/agents', { name, role: 'x' }), 201).agent;
    return { id, key: await world.makeKey(id, ['operator']) };
  };
  const task = async (fields: object): Promise<number> => bodyOf(await ask('POST', '/api/tasks', fields), 201).task.id;
  const show = async (id: number) => {
    const { status, assigned_to } = bodyOf(await ask('GET', `/api/tasks/${id}`)).task;
    return { status, assigned_to };
  };
  const poll = async (agent: string, key: string, more = '') =>
    bodyOf(await ask('GET', `/api/tasks/queue?agent=${agent}${more}`, undefined, key));
  const titles = async (as: string): Promise<string[]> =>
    bodyOf(await ask('GET', '/api/tasks?limit=200', undefined, as)).tasks.map(({ title }: { title: string }) => title);
  const told = async (recipient: string): Promise<string[]> =>
    bodyOf(await ask('GET', `/api/notifications?recipient=${recipient}`)).notifications.map(
      ({ message }: { message: string }) => message,
    );

  it('of a deleted agent: tasks return to the queue, schedules pause, and a later agent of the name gets nothing', async () => {
    await world.makeUser({ username: 'root', role: 'admin' });
    const first = await made('scout');
    const waiting = await task({ title: 'waiting one', assigned_to: 'scout' });
    const running = await task({ title: 'running one', assigned_to: 'scout', status: 'in_progress' });
    const reviewed = await task({ title: 'reviewed one', assigned_to: 'scout', status: 'review' });
    const recurrence = { cron_expr: '0 9 * * *', enabled: true };
    const template = await task({ title: 'daily', assigned_to: 'scout', metadata: { recurrence } });
    const job = { action: 'add', name: 'digest', schedule: '0 9 * * *', command: 'Write the digest', agentId: 'scout' };
    bodyOf(await ask('POST', '/api/cron', job));
    expect(await titles(first.key)).to.include.members(['waiting one', 'reviewed one']);

    bodyOf(await ask('DELETE', `/api/agents/${first.id}`));
    const later = await made('scout');
    expect(await titles(later.key), 'the later agent sees').to.deep.equal([]);
    expect((await ask('GET', `/api/tasks/${reviewed}`, undefined, later.key)).status).to.equal(403);
    expect((await ask('PUT', `/api/tasks/${reviewed}`, { title: 'x' }, later.key)).status).to.equal(403);
    expect((await ask('POST', `/api/tasks/${reviewed}/comments`, { content: 'x' }, later.key)).status).to.equal(403);
    const beat = bodyOf(await ask('POST', `/api/agents/${later.id}/heartbeat`, {}, later.key));
    expect(JSON.stringify(beat)).not.to.match(/waiting one|running one|reviewed one|daily/);

    for (const id of [waiting, running])
      expect(await show(id)).to.deep.equal({ status: 'assigned', assigned_to: null });
    expect(await show(reviewed)).to.deep.equal({ status: 'review', assigned_to: 'scout' });
    const { metadata } = bodyOf(await ask('GET', `/api/tasks/${template}`)).task;
    expect(metadata.recurrence.enabled).to.equal(false);
    const { jobs } = bodyOf(await ask('GET', '/api/cron'));
    expect(jobs.find(({ name }: { name: string }) => name === 'digest').enabled).to.equal(false);
    expect(await told('root')).to.have.members([
      'Recurring task "daily" was paused: its agent scout was deleted. Name another agent, then enable it again.',
      'Scheduled job "digest" was paused: its agent scout was deleted. Name another agent, then enable it again.',
    ]);

    // The stream repeats the past: the later agent gets no frame about tasks of the former one.
    const own = await task({ title: 'own one', assigned_to: 'scout', priority: 'critical' });
    const stream = await openStream(`${world.url}/api/events?since=0`, { 'x-api-key': later.key });
    try {
      await stream.until(() => stream.frames.some(({ data }) => data.title === 'own one'));
      const ids = stream.frames.filter(({ type }) => type.startsWith('task.')).map(({ data }) => data.id);
      expect(new Set(ids)).to.deep.equal(new Set([own]));
    } finally {
      await stream.close();
    }
    const claimed = await poll('scout', later.key);
    expect([claimed.reason, claimed.task.title]).to.deep.equal(['assigned', 'own one']);
  });

  it('of a renamed agent: it keeps the task that it works on, its waiting tasks and its scheduled jobs', async () => {
    const { id, key } = await made('miner');
    const running = await task({ title: 'under way', assigned_to: 'miner', priority: 'critical' });
    expect((await poll('miner', key)).task.id).to.equal(running);
    const waiting = await task({ title: 'next', assigned_to: 'miner', priority: 'critical' });
    const job = { action: 'add', name: 'dig', schedule: '0 9 * * *', command: 'Dig', agentId: 'miner' };
    bodyOf(await ask('POST', '/api/cron', job));

    bodyOf(await ask('PUT', `/api/agents/${id}`, { name: 'digger' }));
    const namesake = await made('miner');
    expect(await show(running)).to.deep.equal({ status: 'in_progress', assigned_to: 'digger' });
    expect(await show(waiting)).to.deep.equal({ status: 'assigned', assigned_to: 'digger' });
    bodyOf(await ask('PUT', `/api/tasks/${running}`, { status: 'review' }, key));
    expect((await poll('digger', key)).task.id).to.equal(waiting);
    const { jobs } = bodyOf(await ask('GET', '/api/cron'));
    expect(jobs.find(({ name }: { name: string }) => name === 'dig').agentId).to.equal('digger');
    bodyOf(await ask('POST', '/api/cron', { action: 'trigger', name: 'dig' }));
    expect(await titles(key)).to.have.members(['under way', 'next', 'dig']);
    expect(await titles(namesake.key)).to.deep.equal([]);
  });

  it('of a renamed agent: reports of its sessions are its own, until another agent has the former name', async () => {
    const { id, key } = await made('diver');
    bodyOf(await ask('PUT', `/api/agents/${id}`, { name: 'swimmer' }));
    const used = { model: 'm', sessionId: 'diver:cli', inputTokens: 10, outputTokens: 1 };
    const owner = async (as?: string) => {
      const { agentId, agentName } = bodyOf(await ask('POST', '/api/tokens', used, as)).record;
      return { agentId, agentName };
    };
    expect(await owner(key)).to.deep.equal({ agentId: id, agentName: 'swimmer' });
    const namesake = await made('diver');
    expect((await ask('POST', '/api/tokens', used, key)).status, 'of another agent').to.equal(403);
    expect(await owner()).to.deep.equal({ agentId: namesake.id, agentName: 'diver' });
    bodyOf(await ask('DELETE', `/api/agents/${namesake.id}`));
    expect(await owner(), 'a deleted one').to.deep.equal({ agentId: null, agentName: 'diver' });
  });

  it('in counts, lists and reports of tasks: they go by id, so a later agent of the name starts with none', async () => {
    const first = await made('owl');
    const done = await task({ title: 'done by the first', assigned_to: 'owl' });
    bodyOf(
      await ask('POST', '/api/quality-review', { taskId: done, reviewer: 'aegis', status: 'approved', notes: 'x' }),
    );
    bodyOf(await ask('PUT', `/api/tasks/${done}`, { status: 'done', outcome: 'success' }));
    await task({ title: 'in review', assigned_to: 'owl', status: 'review' });
    await task({ title: 'late', assigned_to: 'owl', status: 'review', due_date: 1_700_000_000 });
    const seen = async ({ id }: { id: number }, name: string) => {
      const { taskStats } = bodyOf(await ask('GET', '/api/agents?limit=200')).agents.find(
        (one: { id: number }) => one.id === id,
      );
      const diagnostics = bodyOf(await ask('GET', `/api/agents/${id}/diagnostics?privileged=1&evidence=1`));
      const attribution = bodyOf(await ask('GET', `/api/agents/${id}/attribution?privileged=1&evidence=1`));
      const list = bodyOf(await ask('GET', `/api/tasks?assigned_to=${name}`));
      const outcomes = bodyOf(await ask('GET', '/api/tasks/outcomes?timeframe=all')).by_agent[name]?.total ?? 0;
      const standup = bodyOf(await ask('POST', '/api/standup', {})).standup.agentReports.find(
        (one: { agent: { name: string } }) => one.agent.name === name,
      );
      return {
        stats: [taskStats.total, taskStats.done],
        diagnostics: [diagnostics.summary.tasks_total, diagnostics.tasks.recent_completed.length],
        evidence: diagnostics.evidence['summary.tasks_total'].positions.length,
        attribution: attribution.identity.lifetime_stats.tasks_total,
        attributed: attribution.evidence['identity.lifetime_stats.tasks_total'].events.length,
        list: [list.total, list.tasks.length],
        names: [...new Set(list.tasks.map((one: { assigned_to: string }) => one.assigned_to))],
        outcomes,
        standup: [standup.completedToday.length, standup.review.length, standup.activity.actionCount > 0],
      };
    };
    const all = {
      ...{ stats: [3, 1], diagnostics: [3, 1], evidence: 3, attribution: 3, attributed: 3, list: [3, 3], outcomes: 1 },
      standup: [1, 2, false],
    };
    expect(await seen(first, 'owl')).to.deep.equal({ ...all, names: ['owl'] });
    bodyOf(await ask('PUT', `/api/agents/${first.id}`, { name: 'eagle' }));
    // Before any schedule has run: also a task that is done has the new name.
    expect(await seen(first, 'eagle')).to.deep.equal({ ...all, names: ['eagle'] });
    const none = {
      ...{ stats: [0, 0], diagnostics: [0, 0], evidence: 0, attribution: 0, attributed: 0, list: [0, 0], outcomes: 0 },
      ...{ standup: [0, 0, false], names: [] },
    };
    const renamed = await made('owl');
    expect(await seen(renamed, 'owl')).to.deep.equal(none);
    expect(bodyOf(await ask('GET', `/api/tasks/${done}`)).task.assigned_to).to.equal('eagle');
    expect(bodyOf(await ask('GET', '/api/search?q=done by the first&type=task')).results[0].subtitle).to.equal(
      'done · eagle',
    );
    const exported = bodyOf(await ask('GET', '/api/export?type=tasks')).data as { id: number; assigned_to: string }[];
    expect(exported.find(({ id }) => id === done)?.assigned_to).to.equal('eagle');
    // A write to a task that is done writes the present name.
    expect(bodyOf(await ask('PUT', `/api/tasks/${done}`, { resolution: 'x' })).task.assigned_to).to.equal('eagle');
    bodyOf(await ask('DELETE', `/api/agents/${first.id}`));
    const later = await made('eagle');
    expect(await seen(later, 'eagle')).to.deep.equal(none);
    const { by_agent } = bodyOf(await ask('GET', '/api/tasks/outcomes?timeframe=all'));
    expect(by_agent[`eagle (#${first.id})`].total).to.equal(1);
    const { agents } = bodyOf(await ask('GET', '/api/workload'));
    expect(
      agents.load_distribution.filter(({ agent }: { agent: string }) => agent === 'eagle' || agent === 'owl'),
    ).to.deep.equal([]);
  });

  it('in the load of agents: what waits for a former agent of the name does not count', async () => {
    const { id } = await made('ant');
    await task({ title: 'one', assigned_to: 'ant' });
    await task({ title: 'two', assigned_to: 'ant', status: 'in_progress' });
    bodyOf(await ask('PUT', `/api/agents/${id}`, { name: 'bee' }));
    const { id: later } = await made('ant');
    for (const one of [id, later]) bodyOf(await ask('PUT', `/api/agents/${one}`, { status: 'idle' }));
    const { agents } = bodyOf(await ask('GET', '/api/workload'));
    expect(
      agents.load_distribution.filter(({ agent }: { agent: string }) => ['ant', 'bee'].includes(agent)),
    ).to.have.deep.members([
      { agent: 'bee', assigned: 1, in_progress: 1 },
      { agent: 'ant', assigned: 0, in_progress: 0 },
    ]);
  });

  it('in projects: an agent stays under its new name and leaves when it is deleted, and a later agent of the name is in none', async () => {
    const fields = { name: 'Reef', ticket_prefix: 'REEF' };
    const { id } = bodyOf(await ask('POST', '/api/projects', fields), 201).project;
    const path = `/api/projects/${id}/agents`;
    const members = async (more = '') => {
      const { assignments } = bodyOf(await ask('GET', `${path}${more}`));
      const names = assignments.map((one: { agent_name: string }) => one.agent_name);
      expect(bodyOf(await ask('GET', `/api/projects/${id}${more}`)).project.assigned_agents).to.deep.equal(names);
      const { projects } = bodyOf(await ask('GET', `/api/projects${more}`));
      expect(projects.find((one: { id: number }) => one.id === id).assigned_agents).to.deep.equal(names);
      return names;
    };
    const [first, other] = [await made('crab'), await made('squid')];
    for (const name of ['crab', 'squid', 'no agent'])
      bodyOf(await ask('POST', path, { agent_name: name, role: name === 'crab' ? 'lead' : 'diver' }), 201);
    const reply = await ask('GET', path);
    const position = reply.headers.get('x-signalbox-position');
    expect(await members()).to.deep.equal(['crab', 'squid', 'no agent']);

    bodyOf(await ask('PUT', `/api/agents/${first.id}`, { name: 'lobster' }));
    expect(await members()).to.deep.equal(['lobster', 'squid', 'no agent']);
    expect(await members(`?as_of=${position}`), 'in the past').to.deep.equal(['crab', 'squid', 'no agent']);
    const namesake = await made('crab');
    bodyOf(await ask('DELETE', `${path}?agent_name=crab`));
    bodyOf(await ask('POST', path, { agent_name: 'lobster', role: 'again' }), 201);
    expect(await members(), 'the later crab is no member').to.deep.equal(['lobster', 'squid', 'no agent']);
    const change = async (body: object) => bodyOf(await ask('PATCH', `/api/projects/${id}`, body)).project;
    expect((await change({ color: '#fff' })).assigned_agents).to.deep.equal(['lobster', 'squid', 'no agent']);
    expect((await change({ assigned_agents: ['lobster', 'squid', 'crab'] })).assigned_agents).to.deep.equal([
      'lobster',
      'squid',
      'crab',
    ]);
    const { assignments } = bodyOf(await ask('GET', path));
    expect(assignments.map(({ role }: { role: string }) => role)).to.deep.equal(['lead', 'diver', 'member']);

    const before = (await ask('GET', path)).headers.get('x-signalbox-position');
    for (const one of [first, namesake]) bodyOf(await ask('DELETE', `/api/agents/${one.id}`));
    expect((await change({ color: '#000' })).assigned_agents).to.deep.equal(['squid']);
    expect(await members()).to.deep.equal(['squid']);
    for (const name of ['lobster', 'crab']) await made(name);
    expect(await members(), 'later agents of the names').to.deep.equal(['squid']);
    const left = bodyOf(
      await ask('GET', `/api/history/events?type=ProjectAgentsUnassigned&after=${before}`),
    ).events.map((event: { data: { agents: object[] } }) => event.data.agents);
    expect(left.flat()).to.have.deep.members([
      { assignment_id: assignments[2].id, agent_name: 'crab', agent_id: namesake.id },
      { assignment_id: assignments[0].id, agent_name: 'crab', agent_id: first.id },
    ]);

    // A name that was no agent's and now is that of another member is listed once.
    bodyOf(await ask('POST', path, { agent_name: 'whale' }), 201);
    bodyOf(await ask('PUT', `/api/agents/${other.id}`, { name: 'whale' }));
    expect(await members()).to.deep.equal(['whale']);
    expect((await change({ color: '#111' })).assigned_agents).to.deep.equal(['whale']);
    bodyOf(await ask('DELETE', `${path}?agent_name=whale`));
    expect(await members()).to.deep.equal([]);
  });

  it('in a project to which a deleted agent was assigned at the last moment: the schedule removes it', async () => {
    const { id } = bodyOf(await ask('POST', '/api/projects', { name: 'Late', ticket_prefix: 'LATE' }), 201).project;
    const { id: gone } = await made('newt');
    bodyOf(await ask('DELETE', `/api/agents/${gone}`));
    const { commands, store } = world.service.core;
    const stream = projectStream(1, id);
    const agent = { assignment_id: 1_000_000, agent_name: 'newt', agent_id: gone };
    await commands.record(stream, { origin: testOrigin }, [
      projectAgentsAssigned.draft({ project_id: id, name: 'Late', agents: [{ ...agent, role: 'member' }] }),
    ]);
    expect(bodyOf(await ask('GET', `/api/projects/${id}/agents`)).assignments).to.deep.equal([]);
    const { message } = bodyOf(await ask('POST', '/api/scheduler', { task_id: 'agent_references' }));
    expect(message).to.match(/1 deleted agent left a project/);
    const last = (await store.readStream(stream)).at(-1);
    expect([last?.type, last?.data]).to.deep.equal([
      'ProjectAgentsUnassigned',
      { project_id: id, name: 'Late', agents: [agent] },
    ]);
  });

  it('of a renamed agent: its messages show the new name, and a later agent of the former name has none of them', async () => {
    const { id } = await made('fox');
    const hen = await made('hen');
    const say = async (from: string, to: string, content: string) =>
      bodyOf(await ask('POST', '/api/agents/message', { from, to, content }));
    await say('fox', 'hen', 'one');
    await say('hen', 'fox', 'two');
    bodyOf(await ask('PUT', `/api/agents/${id}`, { name: 'wolf' }));
    await made('fox');
    await say('fox', 'hen', 'of another one');
    const comms = async (agent: string) => {
      const { messages, graph, total } = bodyOf(await ask('GET', `/api/agents/comms?agent=${agent}`));
      const texts = messages.map(
        (one: { from_agent: string; to_agent: string; content: string }) =>
          `${one.from_agent} to ${one.to_agent}: ${one.content}`,
      );
      const edges = graph.edges.map(
        (one: { from_agent: string; to_agent: string; message_count: number }) =>
          `${one.from_agent} to ${one.to_agent}: ${one.message_count}`,
      );
      return { texts, edges: edges.sort(), total };
    };
    const both = {
      texts: ['wolf to hen: one', 'hen to wolf: two'],
      edges: ['hen to wolf: 1', 'wolf to hen: 1'],
      total: 2,
    };
    expect(await comms('wolf')).to.deep.equal(both);
    expect(await comms('fox')).to.deep.equal({
      ...{ texts: ['fox to hen: of another one'], edges: ['fox to hen: 1'], total: 1 },
    });
    const beat = bodyOf(await ask('GET', `/api/agents/${hen.id}/heartbeat`));
    expect(JSON.stringify(beat)).to.include('"from_agent":"wolf"');
    // A deleted agent is shown as it was called then, apart from the agent that has this name now.
    bodyOf(await ask('DELETE', `/api/agents/${id}`));
    await made('wolf');
    expect(await comms('wolf')).to.deep.equal({ texts: [], edges: [], total: 0 });
    const { texts, edges } = await comms('hen');
    expect(texts).to.include(`fox (#${id}) to hen: one`);
    expect(edges).to.include.members([`fox (#${id}) to hen: 1`, 'fox to hen: 1']);
  });

  it('of a renamed agent: its conversations go on, and chat, search and filters show it under the new name', async () => {
    const { id, key } = await made('lark');
    const rook = await made('rook');
    const say = async (from: string, to: string, content: string) =>
      bodyOf(await ask('POST', '/api/agents/message', { from, to, content }));
    const chat = async (body: object, as?: string) =>
      bodyOf(await ask('POST', '/api/chat/messages', body, as), 201).message;
    await say('lark', 'rook', 'first song');
    const { conversation_id: own } = await chat(
      { content: 'own song', conversation_id: 'coord:lark', recipient: 'rook' },
      key,
    );
    const reply = await ask('GET', '/api/chat/messages');
    const position = reply.headers.get('x-signalbox-position');
    bodyOf(await ask('PUT', `/api/agents/${id}`, { name: 'finch' }));
    await made('lark');
    await say('finch', 'rook', 'second song');
    await say('rook', 'finch', 'answer');
    await chat({ content: 'to finch', conversation_id: own, recipient: 'finch' }, rook.key);
    const messages = async (query: string) =>
      bodyOf(await ask('GET', `/api/chat/messages?${query}`)).messages.map(
        (one: { from_agent: string; to_agent: string; content: string }) =>
          `${one.from_agent} to ${one.to_agent}: ${one.content}`,
      );
    const pair = `a2a:${id}:${rook.id}`;
    expect(await messages(`conversation_id=${pair}`), 'one conversation').to.deep.equal([
      'finch to rook: first song',
      'finch to rook: second song',
      'rook to finch: answer',
    ]);
    expect(await messages('from_agent=finch')).to.have.members([
      'finch to rook: first song',
      'finch to rook: own song',
      'finch to rook: second song',
    ]);
    expect(await messages('to_agent=finch')).to.have.members(['rook to finch: answer', 'rook to finch: to finch']);
    expect(await messages('from_agent=lark')).to.deep.equal([]);
    expect(await messages(`from_agent=lark&as_of=${position}`), 'in the past').to.have.members([
      'lark to rook: first song',
      'lark to rook: own song',
    ]);
    const conversations = async (agent: string) =>
      bodyOf(await ask('GET', `/api/chat/conversations?agent=${agent}`)).conversations.map(
        (one: { conversation_key: string; participants: string[]; unread_count: number }) =>
          `${one.conversation_key}: ${one.participants.join(', ')} (${one.unread_count})`,
      );
    expect(await conversations('finch')).to.have.members([`${pair}: finch, rook (1)`, 'coord:lark: finch, rook (1)']);
    expect(await conversations('lark')).to.deep.equal([]);
    const found = bodyOf(await ask('GET', '/api/search?q=first song&type=message')).results;
    expect(found[0].title).to.equal('finch → rook');
    // Reading a message to the renamed agent counts for it.
    const [answer] = bodyOf(await ask('GET', '/api/chat/messages?to_agent=finch')).messages;
    bodyOf(await ask('PATCH', `/api/chat/messages/${answer.id}`, { read: true }));
    expect(await conversations('finch')).to.have.members([`${pair}: finch, rook (0)`, 'coord:lark: finch, rook (1)']);
  });
});
