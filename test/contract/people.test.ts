/** Display names and e-mail addresses of users: shown where they were, and in the log only sealed. */
import { expect } from 'chai';
import { fixture } from '../support/fixture.ts';
import { type Frame, openStream } from '../support/stream.ts';
import { until } from '../support/until.ts';
import { PASSWORD } from '../support/worlds/auth.ts';
import { startTasksWorld } from '../support/worlds/tasks.ts';

/** Words that nothing else contains, and too long to occur in base64 by chance. */
const DISPLAY = 'Zyxwella Quorvath';
const LATER = 'Vrombelda Tskorrim';
const EMAIL = 'pqzmurg@xvothaline.example';
const WORDS = [...DISPLAY.split(' '), ...LATER.split(' '), ...EMAIL.split('@'), 'xvothaline'];

// biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
type Found = any;

describe('People', () => {
  const world = fixture(startTasksWorld);
  let as: string;
  let userId: number;
  let other: string;
  let agent: string;
  before(async () => {
    const fields = { password: PASSWORD, role: 'operator', email: EMAIL, display_name: DISPLAY };
    const { body } = await world.ask('POST', '/api/auth/users', { username: 'zyx', ...fields });
    expect(body.user).to.include({ display_name: DISPLAY, email: EMAIL });
    userId = body.user.id;
    as = await world.world.signIn('zyx');
    other = await world.world.makeSession({ username: 'other', role: 'operator' });
    agent = (await world.create({ session_key: 'agent:zyx:main' })).name;
  });
  const stream = fixture(() => openStream(`${world.world.url}/api/events`, { 'x-api-key': world.world.adminKey }));

  async function ask(method: string, path: string, body?: unknown, by = as): Promise<Found> {
    const reply = await world.ask(method, path, body, by);
    expect(reply.status, `${method} ${path} ${JSON.stringify(reply.body)}`).to.be.within(200, 299);
    return reply.body;
  }
  const frame = (type: string, fits: (data: Found) => boolean): Promise<Found> =>
    until(`a frame ${type}`, () => stream.frames.find((one: Frame) => one.type === type && fits(one.data))?.data);
  const told = async (recipient: string) =>
    (await ask('GET', `/api/notifications?recipient=${recipient}`)).notifications as Found[];

  it('are shown by their display names in everything that they write', async () => {
    const { task } = await ask('POST', '/api/tasks', { title: 'Busy', description: `@${agent} and @other` });
    const path = `/api/tasks/${task.id}`;
    expect(task.created_by).to.equal(DISPLAY);
    expect((await ask('PUT', path, { priority: 'high' }, other)).task.created_by).to.equal(DISPLAY);
    expect((await ask('GET', path)).task.created_by).to.equal(DISPLAY);
    const { tasks } = await ask('GET', '/api/tasks');
    expect(tasks.find(({ id }: Found) => id === task.id).created_by).to.equal(DISPLAY);
    const { history } = await ask('GET', `${path}?include=history`);
    expect(history.find(({ type }: Found) => type === 'TaskCreated').actor).to.equal(DISPLAY);

    const { comment } = await ask('POST', `${path}/comments`, { content: `Hello @${agent}` });
    expect(comment.author).to.equal(DISPLAY);
    await ask('POST', `${path}/comments`, { content: 'Hm.', parent_id: comment.id });
    const { comments } = await ask('GET', `${path}/comments`);
    expect([comments[0].author, comments[0].replies[0].author]).to.deep.equal([DISPLAY, DISPLAY]);
    await ask('POST', `${path}/broadcast`, { message: 'All of you' });

    for (const type of ['task.created', 'task.updated'])
      expect((await frame(type, ({ id }) => id === task.id)).created_by, type).to.equal(DISPLAY);
    const commented = await frame(
      'activity.created',
      ({ type, entity_id }) => type === 'comment_added' && entity_id === comment.id,
    );
    expect(commented.actor).to.equal(DISPLAY);
    const mention = await frame(
      'notification.created',
      (data) => data.source_id === comment.id && data.type === 'mention',
    );
    expect(mention.message).to.match(new RegExp(`^${DISPLAY} mentioned you`));

    const { activities } = await ask('GET', `/api/activities?actor=${encodeURIComponent(DISPLAY)}`);
    expect(activities.map(({ type }: Found) => type)).to.include.members(['task_created', 'comment_added']);
    expect(activities.find(({ type }: Found) => type === 'task_created').actor).to.equal(DISPLAY);
    const messages = (await told(agent)).map(({ message }) => message);
    expect(messages.filter((text: string) => text.startsWith(`${DISPLAY} `))).to.have.length.at.least(3);
    const text = JSON.stringify(
      await ask('GET', '/api/export?type=tasks&format=json', undefined, world.world.adminKey),
    );
    expect(text).to.include(`"created_by":"${DISPLAY}"`);
  });

  it('follow their tasks by username', async () => {
    const { task } = await ask('POST', '/api/tasks', { title: 'Followed' });
    await ask('POST', `/api/tasks/${task.id}/comments`, { content: 'Look.' }, other);
    const [notice] = (await told('zyx')).filter(({ message }) => message.includes('"Followed"'));
    expect(notice.message).to.match(/^other commented on "Followed": Look\./);
    // The only user with this display name is the recipient.
    expect(await told(encodeURIComponent(DISPLAY))).to.deep.equal(await told('zyx'));
  });

  it('are shown by display name in chat, and can be found by it', async () => {
    const { message } = await ask('POST', '/api/chat/messages', { content: 'Anybody?', recipient: 'other' });
    expect([message.sender, message.from_agent]).to.deep.equal([DISPLAY, DISPLAY]);
    expect((await frame('chat.message', ({ id }) => id === message.id)).from_agent).to.equal(DISPLAY);
    const [notice] = await told('other');
    expect(notice.title).to.equal(`Message from ${DISPLAY}`);
    const shown = encodeURIComponent(DISPLAY);
    const list = await ask('GET', `/api/chat/messages?from_agent=${shown}`);
    expect(list.messages.map(({ sender }: Found) => sender)).to.deep.equal([DISPLAY]);
    const { conversations } = await ask('GET', `/api/chat/conversations?agent=${shown}`);
    expect(conversations[0].participants).to.include(DISPLAY);

    const reply = { content: 'Yes.', recipient: DISPLAY, conversation_id: message.conversation_id };
    expect((await ask('POST', '/api/chat/messages', reply, other)).message.recipient).to.equal('zyx');
    expect((await told('zyx'))[0]).to.include({ type: 'chat_message', title: 'Message from other' });
  });

  it('are shown by their current name', async () => {
    const { task } = await ask('POST', '/api/tasks', { title: 'Renamed' });
    expect((await ask('GET', `/api/tasks/${task.id}`)).task.created_by).to.equal(DISPLAY);
    await ask('PATCH', '/api/auth/me', { display_name: LATER });
    expect((await ask('GET', `/api/tasks/${task.id}`)).task.created_by).to.equal(LATER);
    const { messages } = await ask('GET', '/api/chat/messages?from_agent=zyx');
    expect(messages[0].sender).to.equal(LATER);
    await ask('PATCH', '/api/auth/me', { display_name: DISPLAY });
  });

  it('do not lend their display name to a same-named agent of another workspace', async () => {
    const namesake = { title: 'Namesake' };
    await world.world.makeUser({ username: 'elsewhere', display_name: 'Else Where', workspace: 2 });
    await world.create({ name: 'elsewhere' });
    const id = (await world.get('elsewhere')).id;
    const key = await world.world.makeKey(id, ['operator']);
    expect((await ask('POST', '/api/tasks', namesake, key)).task.created_by).to.equal('elsewhere');
  });

  it('appear in the log only in encrypted form', async () => {
    const { admin } = { admin: world.world.adminKey };
    await ask('POST', '/api/notifications/deliver', {}, admin);
    await ask('POST', '/api/standup', {}, admin);
    await world.ask('POST', '/api/auth/login', { username: EMAIL, password: 'not the password' }, '');
    await ask('PUT', '/api/auth/users', { id: userId, email: `new-${EMAIL}` }, admin);
    await ask('DELETE', '/api/auth/users', { id: userId }, admin);
    const log = await world.world.rawLog();
    expect(log).to.include('"zyx"');
    for (const word of WORDS) expect(log.includes(word), word).to.equal(false);
  });
});
