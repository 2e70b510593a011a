/** A display name never takes over a name: it is refused where it looks like one, and names are resolved first. */
import { expect } from 'chai';
import { fixture } from '../support/fixture.ts';
import { bodyOf } from '../support/service.ts';
import { openStream } from '../support/stream.ts';
import { startAuthWorld } from '../support/worlds/auth.ts';

describe('Display names', function () {
  this.timeout(60_000);
  const world = fixture(startAuthWorld);
  let admin: string;
  let boss: string;
  let viewer: string;
  let viewerId: number;
  const ask = async (method: string, path: string, body?: unknown, as: string = admin) =>
    world.ask(method, path, { as, body });
  before(async () => {
    admin = world.adminKey;
    boss = await world.makeSession({ username: 'boss', role: 'admin', display_name: 'The Boss' });
    viewerId = await world.makeUser({ username: 'eve', role: 'viewer' });
    viewer = await world.signIn('eve');
    bodyOf(await ask('POST', '/api/agents', { name: 'scout', role: 'x' }), 201);
  });
  /** Latin, in capitals, and with a Cyrillic о. */
  const LIKE = ['boss', 'Boss', 'BOSS', 'b\u043ess', 'scout', 'Scout', 'sc\u043eut'];
  const RESERVED = ['coordinator', 'Coordinator', 'aegis', 'system'];

  it('that look like the name of another user or of an agent are refused, in every way in which one is set', async () => {
    for (const display_name of [...LIKE, ...RESERVED]) {
      const ways: [string, string, object, string?][] = [['PATCH', '/api/auth/me', {}, viewer]];
      if (['Boss', 'sc\u043eut', 'coordinator'].includes(display_name))
        ways.push(
          ['PUT', '/api/auth/users', { id: viewerId }],
          ['POST', '/api/auth/users', { username: 'new-one', password: 'a long enough one', role: 'viewer' }],
        );
      // Changes of users by others are limited per minute.
      for (const [method, path, more, as] of ways) {
        const { status, body } = await ask(method, path, { ...more, display_name }, as);
        expect(status, `${display_name} by ${method} ${path}`).to.equal(RESERVED.includes(display_name) ? 400 : 409);
        expect(body.error, display_name).to.match(/^display_name: /);
      }
    }
    const { user } = bodyOf(await ask('GET', '/api/auth/me', undefined, viewer));
    expect(user.display_name).to.equal('eve');
  });

  it('may look like the own username, or like the display name of another user', async () => {
    for (const display_name of ['Eve', 'The Boss', 'Eve Lee'])
      expect((await ask('PATCH', '/api/auth/me', { display_name }, viewer)).status, display_name).to.equal(200);
  });

  it('keep new agents and users from names that look like them', async () => {
    expect((await ask('PATCH', '/api/auth/me', { display_name: 'Deployer' }, viewer)).status).to.equal(200);
    const agent = await ask('POST', '/api/agents', { name: 'deployer', role: 'x' });
    expect([agent.status, agent.body.error]).to.deep.equal([
      409,
      'A user is shown as "deployer", or by a display name that looks like it; choose another name, or change that display name first.',
    ]);
    const user = { username: 'depl\u043eyer', password: 'a long enough one', role: 'viewer' };
    expect((await ask('POST', '/api/auth/users', user)).status).to.be.oneOf([400, 409]);
    expect((await ask('POST', '/api/auth/users', { ...user, username: 'deployer' })).status).to.equal(409);
    expect((await ask('PATCH', '/api/auth/me', { display_name: 'Eve Lee' }, viewer)).status).to.equal(200);
    expect((await ask('POST', '/api/agents', { name: 'deployer', role: 'x' })).status).to.equal(201);
  });

  it('are found after agents and usernames, in messages, mentions, notifications and alerts', async () => {
    const sent = async (recipient: string) =>
      bodyOf(await ask('POST', '/api/chat/messages', { content: 'hello', recipient }), 201).message.to_agent;
    expect(await sent('coordinator')).to.equal('coordinator');
    expect(await sent('scout')).to.equal('scout');
    expect(await sent('boss')).to.equal('boss');
    // Messages show people by their display names, and keep their usernames.
    expect(await sent('Eve Lee')).to.be.oneOf(['eve', 'Eve Lee']);
    const unread = async (query: string, as: string) =>
      bodyOf(await ask('GET', `/api/notifications?recipient=${encodeURIComponent(query)}`, undefined, as)).total;
    const count = await unread('eve', viewer);
    expect(count).to.be.at.least(1);
    expect(await unread('Eve Lee', viewer), 'by the display name').to.equal(count);
    expect((await ask('GET', '/api/notifications?recipient=boss', undefined, viewer)).status).to.equal(403);

    expect((await ask('PATCH', '/api/auth/me', { display_name: 'Evie' }, viewer)).status).to.equal(200);
    const told = await unread('eve', viewer);
    bodyOf(await ask('POST', '/api/tasks', { title: 't', description: 'see @evie, @scout and @boss' }), 201);
    expect(await unread('eve', viewer)).to.equal(told + 1);
    const rule = {
      name: 'watch',
      entity_type: 'agent',
      condition_field: 'status',
      condition_operator: 'count_above',
      condition_value: '0',
      action_config: { recipient: 'Evie' },
    };
    const { id } = bodyOf(await ask('POST', '/api/alerts', rule), 201).rule;
    expect(bodyOf(await ask('POST', '/api/alerts', { action: 'evaluate' })).triggered).to.equal(1);
    expect(await unread('eve', viewer), `rule ${id}`).to.equal(told + 2);
    // Two users with one display name: it names neither.
    expect((await ask('PATCH', '/api/auth/me', { display_name: 'Evie' }, boss)).status).to.equal(200);
    expect(await sent('Evie')).to.equal('Evie');
    expect((await ask('POST', '/api/tasks', { title: 't', description: 'see @evie' })).status).to.equal(400);
    expect(await unread('eve', viewer)).to.equal(told + 2);
  });
});

describe('A name that comes to another owner', function () {
  this.timeout(60_000);
  const world = fixture(startAuthWorld);
  const ask = async (method: string, path: string, body?: unknown, as: string = world.adminKey) =>
    world.ask(method, path, { as, body });
  const head = () => world.service.core.eventLog.head();
  const notify = async (recipient: string) =>
    bodyOf(await ask('POST', '/api/chat/messages', { content: 'for the first owner', recipient }), 201);
  const PATH = (name: string) => `/api/notifications?recipient=${name}`;

  it('shows a user nothing that was for the former user of the name, now, in the past and in the stream', async () => {
    const first = await world.makeUser({ username: 'ann', role: 'viewer' });
    const session = await world.signIn('ann');
    await notify('ann');
    expect(bodyOf(await ask('GET', PATH('ann'), undefined, session)).total).to.equal(1);
    expect((await ask('DELETE', '/api/auth/users', { id: first })).status).to.equal(200);
    await world.makeUser({ username: 'ann', role: 'viewer' });
    const again = await world.signIn('ann');
    const position = await head();
    for (const path of [PATH('ann'), `${PATH('ann')}&as_of=${position}`]) {
      const { total, notifications } = bodyOf(await ask('GET', path, undefined, again));
      expect({ total, notifications }, path).to.deep.equal({ total: 0, notifications: [] });
    }
    const state = bodyOf(await ask('GET', '/api/notifications/deliver', undefined, again));
    expect(state.statistics.total).to.equal(0);
    await notify('ann');
    expect(bodyOf(await ask('GET', PATH('ann'), undefined, again)).total).to.equal(1);
    expect(bodyOf(await ask('GET', PATH('ann'))).total, 'an admin').to.equal(2);
    const stream = await openStream(`${world.url}/api/events?since=0`, { cookie: again });
    try {
      await stream.until(() => stream.frames.some(({ type }) => type === 'notification.created'));
      const mine = stream.frames.filter(({ type }) => type === 'notification.created');
      expect(mine.map(({ data }) => data.recipient)).to.deep.equal(['ann']);
    } finally {
      await stream.close();
    }
  });

  it('shows an agent nothing that was for the former agent of the name', async () => {
    const made = async () => bodyOf(await ask('POST', '/api/agents', { name: 'heir', role: 'x' }), 201).agent.id;
    const first = await made();
    await notify('heir');
    const before = await head();
    bodyOf(await ask('DELETE', `/api/agents/${first}`));
    const second = await made();
    const key = await world.makeKey(second, ['operator']);
    expect(bodyOf(await ask('GET', PATH('heir'), undefined, key)).total).to.equal(0);
    const beat = bodyOf(await ask('POST', `/api/agents/${second}/heartbeat`, {}, key));
    expect(JSON.stringify(beat)).not.to.include('first owner');
    const past = await ask('GET', `${PATH('heir')}&as_of=${before}`, undefined, key);
    expect([past.status, past.body.error]).to.deep.equal([403, past.body.error]);
    expect(past.body.error).to.match(/^as_of: you may read the past back to /);
    const tasks = await ask('GET', `/api/tasks?as_of=${before}`, undefined, key);
    expect(tasks.status).to.equal(403);
    const marked = bodyOf(await ask('PUT', '/api/notifications', { recipient: 'heir', markAllRead: true }, key));
    expect(marked.markedAsRead).to.equal(0);
  });

  it('shows an agent no message that was delivered to the former agent of the name, wherever messages are shown', async () => {
    const made = async () => bodyOf(await ask('POST', '/api/agents', { name: 'next', role: 'x' }), 201).agent.id;
    const first = await made();
    const former = await world.makeKey(first, ['viewer', 'agent:self']);
    await notify('next');
    bodyOf(await ask('POST', '/api/notifications/deliver', { agent_filter: 'next' }));
    const SHOWN = ['/api/chat/conversations', '/api/chat/messages', '/api/agents/comms', '/api/search?q=owner'];
    const delivered = (one: unknown) => JSON.stringify(one).includes('🔔');
    for (const path of SHOWN.slice(0, 3))
      expect(delivered(bodyOf(await ask('GET', path, undefined, former))), `own, ${path}`).to.equal(true);
    bodyOf(await ask('PUT', `/api/agents/${first}`, { name: 'moved-on' }));
    for (const path of SHOWN.slice(0, 3))
      expect(delivered(bodyOf(await ask('GET', path, undefined, former))), `own when renamed, ${path}`).to.equal(true);
    // Raised for the renamed agent and for a deleted one, and delivered only when another agent has the name.
    await notify('moved-on');
    bodyOf(await ask('PUT', `/api/agents/${first}`, { name: 'moved-again' }));
    const deleted = await made();
    await notify('next');
    bodyOf(await ask('DELETE', `/api/agents/${deleted}`));
    const second = await made();
    bodyOf(await ask('POST', '/api/agents', { name: 'moved-on', role: 'x' }), 201);
    const key = await world.makeKey(second, ['viewer', 'agent:self']);
    const inboxOf = async (id: number) => JSON.stringify(bodyOf(await ask('GET', `/api/agents/${id}/heartbeat`)));
    const inbox = await inboxOf(first);
    bodyOf(await ask('POST', '/api/notifications/deliver', {}));
    expect(await inboxOf(second)).not.to.include('🔔');
    expect((await inboxOf(first)).split('🔔').length, 'a renamed agent').to.be.above(inbox.split('🔔').length);
    for (const path of SHOWN)
      expect(delivered(bodyOf(await ask('GET', path, undefined, key))), `of another, ${path}`).to.equal(false);
    const conversations = async (as?: string) =>
      JSON.stringify(bodyOf(await ask('GET', '/api/chat/conversations', undefined, as)));
    expect(await conversations()).to.include(`a2a:${first}:@system`);
    expect(await conversations(key)).not.to.include(`a2a:${first}:@system`);
  });

  it('notifies a later agent of the name of nothing in tasks that the former one followed; a renamed agent is notified', async () => {
    const made = async (name: string) => bodyOf(await ask('POST', '/api/agents', { name, role: 'x' }), 201).agent.id;
    const titleOf = (name: string) => ({ title: `plan of ${name}`, assigned_to: name });
    const first = await made('pupil');
    const renamed = await made('novice');
    const tasks: number[] = [];
    for (const body of [titleOf('pupil'), titleOf('pupil'), titleOf('novice')])
      tasks.push(bodyOf(await ask('POST', '/api/tasks', body), 201).task.id);
    const [open, done, other] = tasks;
    const key = await world.makeKey(first, ['operator']);
    bodyOf(await ask('POST', `/api/tasks/${open}/comments`, { content: 'I follow it' }, key), 201);
    bodyOf(await ask('POST', `/api/tasks/${other}/comments`, { content: 'see @pupil' }), 201);
    const review = { taskId: done, reviewer: 'aegis', status: 'approved', notes: 'n' };
    bodyOf(await ask('POST', '/api/quality-review', review));
    bodyOf(await ask('PUT', `/api/tasks/${done}`, { status: 'done' }));
    bodyOf(await ask('DELETE', `/api/agents/${first}`));
    bodyOf(await ask('PUT', `/api/agents/${renamed}`, { name: 'senior' }));
    const heirs = await world.makeKey(await made('pupil'), ['operator']);
    const heirOfRenamed = await world.makeKey(await made('novice'), ['operator']);
    for (const id of tasks) bodyOf(await ask('POST', `/api/tasks/${id}/comments`, { content: 'a reply' }), 201);
    bodyOf(await ask('PUT', `/api/tasks/${done}`, { status: 'review' }));
    bodyOf(await ask('PUT', `/api/tasks/${other}`, { status: 'in_progress' }));
    for (const id of tasks) bodyOf(await ask('POST', `/api/tasks/${id}/broadcast`, { message: 'to all' }));
    for (const [name, as] of [
      ['pupil', heirs],
      ['novice', heirOfRenamed],
    ] as const) {
      const { notifications } = bodyOf(await ask('GET', PATH(name), undefined, as));
      expect(
        notifications.map(({ message }: { message: string }) => message),
        name,
      ).to.deep.equal([]);
    }
    const { notifications } = bodyOf(await ask('GET', PATH('senior')));
    expect(notifications.map(({ type }: { type: string }) => type)).to.include.members(['comment', 'status_change']);
    // A new follower of the task is notified again.
    bodyOf(await ask('PUT', `/api/tasks/${open}`, { assigned_to: 'pupil' }));
    bodyOf(await ask('POST', `/api/tasks/${open}/comments`, { content: 'for you' }), 201);
    const again = bodyOf(await ask('GET', PATH('pupil'), undefined, heirs)).notifications;
    expect(again.map(({ type }: { type: string }) => type)).to.include.members(['assignment', 'comment']);
  });

  it('shows an agent in the stream no notifications for the agent that had its name before it was renamed', async () => {
    const made = async (name: string) => bodyOf(await ask('POST', '/api/agents', { name, role: 'x' }), 201).agent.id;
    const first = await made('crown');
    const late = await made('late');
    const key = await world.makeKey(late, ['viewer', 'agent:self']);
    const since = await head();
    await notify('crown');
    bodyOf(await ask('DELETE', `/api/agents/${first}`));
    bodyOf(await ask('PUT', `/api/agents/${late}`, { name: 'crown' }));
    bodyOf(await ask('POST', '/api/chat/messages', { content: 'for the second owner', recipient: 'crown' }), 201);
    const stream = await openStream(`${world.url}/api/events?since=${since}`, { 'x-api-key': key });
    try {
      const mine = () => stream.frames.filter(({ type }) => type === 'notification.created');
      await stream.until(() => mine().length > 0);
      expect(mine().map(({ data }) => data.message)).to.have.length(1);
      expect(JSON.stringify(mine())).to.include('second owner').and.not.include('first owner');
    } finally {
      await stream.close();
    }
  });

  it('and the past shows what was deleted since to admins only, as far back as the stream goes for others', async () => {
    const viewer = await world.makeSession({ username: 'vic', role: 'viewer' });
    const operator = await world.makeSession({ username: 'oto', role: 'operator' });
    const { task } = bodyOf(await ask('POST', '/api/tasks', { title: 'withdrawn' }), 201);
    const kept = bodyOf(await ask('POST', '/api/tasks', { title: 'kept' }), 201).task;
    bodyOf(await ask('POST', `/api/tasks/${task.id}/comments`, { content: 'secret words' }), 201);
    const at = await head();
    bodyOf(await ask('DELETE', `/api/tasks/${task.id}`));
    bodyOf(await ask('PUT', `/api/tasks/${kept.id}`, { title: 'renamed' }));
    for (const as of [viewer, operator]) {
      expect((await ask('GET', `/api/tasks/${task.id}?as_of=${at}`, undefined, as)).status).to.equal(404);
      const comments = await ask('GET', `/api/tasks/${task.id}/comments?as_of=${at}`, undefined, as);
      expect(JSON.stringify(comments.body)).not.to.include('secret words');
      const { tasks } = bodyOf(await ask('GET', `/api/tasks?limit=200&as_of=${at}`, undefined, as));
      const titles = tasks.map(({ title }: { title: string }) => title);
      expect(titles).to.include('kept').and.not.include('withdrawn').and.not.include('renamed');
    }
    expect(bodyOf(await ask('GET', `/api/tasks/${task.id}?as_of=${at}`)).task.title).to.equal('withdrawn');
  });
});
