/** The live stream: frames, resuming, slow clients, cursors that it refuses. */
import { type IncomingMessage, request } from 'node:http';
import { expect } from 'chai';
import { agentStream } from '../../../commands/agents/agents.ts';
import { fixture } from '../../support/fixture.ts';
import { registeredAgent } from '../../support/kit.ts';
import { bodyOf, call, startTestService, TEST_KEY } from '../../support/service.ts';
import { openStream } from '../../support/stream.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';
import { makeAgent, makeKey, makeUser } from '../../support/worlds/monitoring.ts';

describe('GET /api/events', () => {
  const base = fixture(startTestService);

  const agent = (name: string) => makeAgent(base, name);
  const headers = { 'x-api-key': TEST_KEY };
  const names = (stream: { frames: { type: string; data: { name: string } }[] }) =>
    stream.frames.filter((frame) => frame.type === 'agent.created').map((frame) => frame.data.name);

  // The first use of the global key is a security event.
  before(() => agent('first'));

  it('sends frames with id, workspace and milliseconds, and the headers of an event stream', async () => {
    const stream = await openStream(`${base.url}/api/events`, headers);
    expect(stream.headers.get('content-type')).to.equal('text/event-stream');
    expect(stream.headers.get('cache-control')).to.equal('no-cache, no-transform');
    const { id } = await agent('streamed');
    await stream.until(() => stream.frames.length >= 2);
    const [created, activity] = stream.frames;
    expect(created?.type).to.equal('agent.created');
    expect(created?.data).to.include({ id, name: 'streamed', workspace_id: 1 });
    expect(activity?.type).to.equal('activity.created');
    expect(created?.timestamp).to.be.closeTo(Date.now(), 60_000);
    expect(created?.id).to.equal(`${activity?.id}.1`);
    stream.close();
  });

  it('resumes after any id without gaps or duplicates, even between the frames of one event', async () => {
    const stream = await openStream(`${base.url}/api/events`, headers);
    for (let n = 0; n < 6; n++) await agent(`resume-${n}`);
    await stream.until(() => stream.frames.length >= 12);
    stream.close();
    const ids = stream.frames.map((frame) => frame.id);
    for (let cut = 0; cut < 12; cut++) {
      const resumed = await openStream(`${base.url}/api/events`, { ...headers, 'last-event-id': ids[cut] as string });
      await resumed.until(() => resumed.frames.length >= 11 - cut);
      expect(resumed.frames.slice(0, 11 - cut).map((frame) => frame.id)).to.deep.equal(ids.slice(cut + 1));
      resumed.close();
    }
    for (const name of ['since', 'lastEventId', 'Last-Event-ID']) {
      const since = await openStream(`${base.url}/api/events?${name}=${ids[5]}`, headers);
      await since.until(() => since.frames.length >= 6);
      expect(since.frames[0]?.id, name).to.equal(ids[6]);
      since.close();
    }
    expect((await call(base, 'GET', '/api/events?lastEventId=abc')).status).to.equal(400);
  });

  it('sends everything ever streamed from the beginning, then live events', async () => {
    const stream = await openStream(`${base.url}/api/events?since=0&kind=agent.created`, headers);
    await stream.until(() => names(stream).includes('resume-5'));
    const created = (await call(base, 'GET', '/api/activities?type=agent_created&limit=500')).body.activities;
    const all = created.map((activity: { metadata: { name: string } }) => activity.metadata.name).reverse();
    expect(names(stream)).to.deep.equal(all);
    await agent('after-all');
    await stream.until(() => names(stream).includes('after-all'));
    expect(new Set(names(stream)).size).to.equal(names(stream).length);
    expect(stream.frames.every((frame) => frame.type === 'agent.created')).to.equal(true);
    stream.close();
  });

  it('falls back to the log for a client that does not read, without loss', async function () {
    this.timeout(60_000);
    const slow = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(`${base.url}/api/events?kind=chat.message`, { headers }, resolve);
      asked.on('error', reject);
      asked.end();
    });
    slow.pause();
    const { id } = await agent('talkative');
    const content = 'x'.repeat(20_000);
    const sent: number[] = [];
    for (let n = 0; n < 20; n++) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () =>
          call(base, 'POST', '/api/agents/message', { from: 'tester', to: 'talkative', content }),
        ),
      );
      sent.push(...answers.map((answer) => answer.body.id));
    }
    expect(id).to.be.greaterThan(0);
    let text = '';
    slow.setEncoding('utf8');
    slow.on('data', (chunk) => {
      text += chunk;
    });
    slow.resume();
    // The last line may not have arrived whole.
    const received = () =>
      text
        .split('\n')
        .slice(0, -1)
        .filter((line) => line.startsWith('data: ') && line.includes('"chat.message"'));
    await until('all messages arrive', () => received().length >= sent.length, 40_000);
    const got = received().map((line) => JSON.parse(line.slice(6)).data.id);
    expect(got.sort((a, b) => a - b)).to.deep.equal(sent.sort((a, b) => a - b));
    slow.destroy();
  });

  describe('the earliest visible event', () => {
    const DAY = 86_400_000;
    /** An agent that was created so many days ago, as far as the log knows. */
    async function agentOf(days: number, name: string): Promise<void> {
      const { store, commands } = base.service.core;
      const agentId = await commands.counters.take('agent');
      const [event] = await store.prepare([registeredAgent({ agent_id: agentId, name })], testOrigin);
      if (!event) throw new Error('nothing was prepared');
      const at = Date.now() - days * DAY;
      const { position } = await store.append(
        agentStream(1, agentId),
        [{ ...event, meta: { ...event.meta, at } }],
        'none',
      );
      await until('its activity is listed', async () => {
        const { activities } = (await call(base, 'GET', '/api/activities?limit=1')).body;
        return activities[0]?.data?.name === name || position === 0;
      });
    }
    const set = (days: string) => call(base, 'PUT', '/api/settings', { settings: { 'retention.stream_days': days } });
    /** Agents whose events a client gets from the beginning, and the frames about that. */
    async function heard(as: Record<string, string>, last: string, since = '0') {
      const stream = await openStream(`${base.url}/api/events?since=${since}&kind=agent.created`, as);
      await stream.until(() => names(stream).includes(last));
      stream.close();
      return { names: names(stream), from: stream.connected?.from };
    }

    it('is determined by the setting for callers who are not admins', async () => {
      const viewer = await makeUser(base, 'watcher', 'viewer');
      const operator = await makeUser(base, 'watching-operator', 'operator');
      await agentOf(31, 'a month ago');
      await agentOf(29, 'four weeks ago');
      await agent('now');
      for (const as of [viewer, operator]) {
        const { names: seen, from } = await heard(as, 'now');
        expect(seen).to.deep.equal(['four weeks ago', 'now']);
        expect(from).to.be.closeTo(Date.now() - 30 * DAY, 60_000);
      }
      const all = await heard(headers, 'now');
      expect(all.names).to.include.members(['resume-0', 'a month ago', 'four weeks ago', 'now']);
      expect(all.from).to.equal(undefined);
      expect((await set('28')).status).to.equal(200);
      expect((await heard(viewer, 'now')).names).to.deep.equal(['now']);
      expect((await set('0')).status).to.equal(200);
      const whole = await heard(viewer, 'now');
      expect(whole).to.deep.equal(all);
      expect((await set('3651')).status).to.equal(400);
      expect((await call(base, 'DELETE', '/api/settings', { key: 'retention.stream_days' })).status).to.equal(200);
    });

    it('is determined by the issue time of an agent’s key, whatever has been deleted since', async () => {
      const { id, headers: first } = await makeKey(base, 'early', ['viewer']);
      const start = await base.service.core.eventLog.head();
      const secret = 'walrus9x';
      const { task } = (await call(base, 'POST', '/api/tasks', { title: secret, assigned_to: 'early' })).body;
      await call(base, 'POST', `/api/tasks/${task.id}/comments`, { content: secret });
      await call(base, 'DELETE', `/api/tasks/${task.id}`);
      const issued = async (scopes: string[]) => ({
        'x-api-key': (await call(base, 'POST', `/api/agents/${id}/keys`, { scopes })).body.api_key as string,
      });
      const before = Date.now();
      const second = await issued(['viewer']);
      const later = await base.service.core.eventLog.head();
      await agent('after both keys');
      const everything = async (as: Record<string, string>, since = '0') => {
        const stream = await openStream(`${base.url}/api/events?since=${since}`, as);
        await stream.until(() => names(stream).includes('after both keys'));
        stream.close();
        return { text: JSON.stringify(stream.frames), from: stream.connected?.from, count: stream.frames.length };
      };
      expect((await everything(first)).text).to.include(secret);
      const { text, from, count } = await everything(second);
      expect(text).not.to.include(secret);
      expect(count).to.equal(2);
      expect(from).to.be.within(before - 1_000, Date.now());
      expect((await everything(second, `${start}`)).text).not.to.include(secret);
      expect(await everything(second, `${later}`)).to.deep.equal({ text, from: undefined, count });
      const admins = await everything(await issued(['admin']));
      expect(admins.text).to.include(secret);
      expect(admins.from).to.equal(undefined);
    });
  });

  it('rejects an invalid cursor', async () => {
    expect((await call(base, 'GET', '/api/events?since=abc')).status).to.equal(400);
    expect((await call(base, 'GET', '/api/events', undefined, { 'last-event-id': '-3' })).status).to.equal(400);
  });

  it('rejects a cursor of another log with a helpful message', async () => {
    const { eventLog } = base.service.core;
    const positions = new Set<number>();
    for await (const events of eventLog.readAll()) for (const event of events) positions.add(event.position);
    const head = await eventLog.head();
    const between = [head - 1, head - 2].filter((position) => !positions.has(position));
    for (const position of [head + 1_000_000_000, Number.MAX_SAFE_INTEGER, ...between]) {
      for (const id of [`${position}`, `${position}.1`]) {
        const body = bodyOf(await call(base, 'GET', '/api/events', undefined, { 'last-event-id': id }), 400);
        expect(body).to.include({ code: 'UNKNOWN_EVENT_ID' });
        expect(body.error).to.match(/^There is no frame .* in this log, .* connect without an id\.$/);
      }
      expect((await call(base, 'GET', `/api/events?since=${position}`)).status).to.equal(400);
    }
  });
});
