/** Whom the stream gives frames about tasks and notifications, live and resuming, and how far back it goes. */
import { expect } from 'chai';
import { createOwners } from '../../api/stream/owners.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { adapterReported } from '../../shared/events/agents/adapters.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { githubIssueCommented } from '../../shared/events/github/issues.ts';
import { notificationForwarded, notificationRaised } from '../../shared/events/monitoring/notifications.ts';
import { taskBranched } from '../../shared/events/tasks/branches.ts';
import { taskAssigned, taskCommented } from '../../shared/events/tasks/comments.ts';
import { taskDispatched } from '../../shared/events/tasks/dispatch.ts';
import { taskRouted } from '../../shared/events/tasks/routing.ts';
import type { LoggedEvent } from '../../shared/ports/event-log.ts';
import { type Draft, eventsOf, failureOf, registeredAgent, rowsAfter, sample } from '../support/kit.ts';
import { type OpenStream, openStream } from '../support/stream.ts';
import { type HubServer, LOGGED_AT, logged, startHub } from '../support/stream-hub.ts';
import { claimed, created, deleted, placed, requeued, reviewed, statusSet, TASK, updated } from '../support/tasks.ts';

const about = { task_id: 7, title: TASK.title };
const STREAM = 'task-1-7';

const commented = (author = 'Ann'): Draft =>
  taskCommented.draft({ ...about, comment_id: 1, parent_id: null, depth: 0, author, content: 'so', mentions: [] });
const branched = taskBranched.draft({ ...about, repo: 'acme/roof', branch: 'mend', url: 'https://github.com' });

/** What happens to a task, with every kind of event that gives it another assignee. */
const LIFE: readonly Draft[] = [
  created(),
  commented(),
  taskAssigned.draft({ ...about, ...placed({}, { assigned_to: 'ada' }), trigger: 'mention', by: 'Ann' }),
  branched,
  claimed('ada'),
  commented('ada'),
  requeued(1, { known: false }),
  taskRouted.draft({ ...about, agent: 'eve', role: 'coder', score: 1, ...placed({}, { assigned_to: 'eve' }) }),
  taskDispatched.draft({ ...about, agent_id: 2, agent: 'eve', run: 1, ...placed({ assigned_to: 'eve' }, {}) }),
  updated({ assigned_to: 'zoe', title: 'Mend it again' }, { assigned_to: 'eve' }),
  commented('zoe'),
  updated({ assigned_to: null }, { assigned_to: 'zoe' }),
  statusSet('inbox', 'review'),
  reviewed('approved'),
  deleted(),
];

describe('owners of a task', () => {
  const events = eventsOf(LIFE, { actor: { type: 'agent', id: 5, name: 'agent:kim' } }).map((event) => ({
    ...event,
    stream: STREAM,
  }));
  const source = (reads: string[] = []) => ({
    decode: (event: unknown) => event as DomainEvent,
    async *stream(name: string, from: number) {
      reads.push(`${name} ${from}`);
      const found = events.filter(({ stream, revision }) => stream === name && revision >= from);
      for (const event of found) yield [event as unknown as LoggedEvent];
    },
  });

  it('match the row after each event, whatever the order of the look-ups', async () => {
    const asked = [...events].sort((one, other) => ((one.position * 7) % 16) - ((other.position * 7) % 16));
    const owners = createOwners(source());
    for (const { position } of asked) {
      const [row] = rowsAfter(tasksProjection, events.slice(0, position)).tasks;
      const before = rowsAfter(tasksProjection, events.slice(0, position - 1)).tasks[0];
      const { assigned_to, assignee_id, creator_agent } = row ?? before ?? {};
      const label = `${events[position - 1]?.type} at ${position}`;
      const expected = { assignedTo: assigned_to, assigneeId: assignee_id, creatorAgent: creator_agent };
      expect(await owners.at(1, 7, position), label).to.deep.equal(expected);
      expect(expected.creatorAgent, label).to.equal(5);
    }
  });

  it('read a stream once, then only its new events', async () => {
    const reads: string[] = [];
    const owners = createOwners(source(reads));
    const at = (position: number) => owners.at(1, 7, position);
    await Promise.all([at(3), at(9), at(15)]);
    expect(reads).to.deep.equal([`${STREAM} 0`]);
    await at(16);
    expect(reads).to.deep.equal([`${STREAM} 0`, `${STREAM} 15`]);
    expect(await owners.at(1, 8, 3), 'no such task').to.equal(undefined);
    expect(await owners.at(2, 7, 3), 'another workspace').to.equal(undefined);
  });

  it('are read again after the store has failed during a read', async () => {
    let broken = true;
    const { stream, decode } = source();
    const owners = createOwners({
      decode,
      async *stream(name, from) {
        for await (const batch of stream(name, from)) {
          if (broken && batch[0]?.position === 4) throw new Error('away');
          yield batch;
        }
      },
    });
    expect(await failureOf(owners.at(1, 7, 9))).to.equal('away');
    broken = false;
    expect(await owners.at(1, 7, 9)).to.deep.equal({ assignedTo: 'eve', assigneeId: null, creatorAgent: 5 });
  });
});

describe('frames for agents and viewers', () => {
  let base: HubServer;
  let open: OpenStream[];
  beforeEach(() => {
    open = [];
  });
  afterEach(async () => {
    for (const stream of open) stream.close();
    await base.close();
  });

  const asAgent = (name: string, id = 100) => ({ 'x-agent-name': name, 'x-agent-id': `${id}`, 'x-user': name });
  const listen = async (headers: Record<string, string>) => {
    const stream = await openStream(base.url, headers);
    open.push(stream);
    return stream;
  };
  /** What a client gets of some events: following them live, and resuming at the beginning. */
  async function received(
    events: Parameters<typeof logged>[1][],
    headers: Record<string, string>,
    more: (index: number) => Parameters<typeof logged>[3] = () => ({}),
  ) {
    base = await startHub();
    const end = events.length + 1;
    base.log.events = [...events, registeredAgent({ agent_id: 1, name: 'last' })].map((event, index) =>
      logged(index + 1, event, 1, more(index)),
    );
    const live = await listen(headers);
    base.log.follow(end);
    const resumed = await listen({ ...headers, 'last-event-id': '0' });
    for (const stream of [live, resumed]) await stream.until(() => stream.frames.at(-1)?.id === `${end}`);
    const ids = (stream: OpenStream) => stream.frames.map(({ id }) => id);
    expect(ids(resumed), 'the same, resuming').to.deep.equal(ids(live));
    return live.frames.filter(({ id }) => Number.parseInt(id ?? '', 10) !== end);
  }
  const onTask = (index: number) => (index < LIFE.length ? { stream: STREAM, revision: index } : {});

  it('about a task reach an agent while it is assigned to it', async () => {
    const frames = await received([...LIFE], asAgent('ada'), onTask);
    const positions = new Set(frames.map(({ id }) => Number.parseInt(id ?? '', 10)));
    expect([...positions]).to.deep.equal([3, 4, 5, 6]);
  });

  it('about a task reach the agent that created it, whatever its assignee', async () => {
    const actor = { type: 'agent', id: 5, name: 'agent:kim' } as const;
    const frames = await received([...LIFE], asAgent('kim', 5), (index) => ({ ...onTask(index), meta: { actor } }));
    expect(frames.map(({ type }) => type)).to.include.members(['task.created', 'task.deleted']);
    // An agent that has its name, but did not create it.
    await base.close();
    expect(
      await received([...LIFE], asAgent('kim', 6), (index) => ({ ...onTask(index), meta: { actor } })),
    ).to.deep.equal([]);
  });

  it('about a task do not reach other agents, but reach users and admins', async () => {
    expect(await received([...LIFE], asAgent('bob'), onTask)).to.deep.equal([]);
    await base.close();
    const all = (await received([...LIFE], {}, onTask)).map(({ id }) => id);
    expect(all).to.include.members(['1', '2', '15']);
    await base.close();
    const admin = await received([...LIFE], { ...asAgent('bob'), 'x-role': 'admin' }, onTask);
    expect(admin.map(({ id }) => id)).to.deep.equal(all);
  });

  it('about a task from another stream follow the task; those of an unknown task reach no agent', async () => {
    const events = [
      created({ assigned_to: 'ada' }),
      githubIssueCommented.draft({ repo: 'acme/roof', issue_number: 3, task_id: 7 }),
      githubIssueCommented.draft({ repo: 'acme/roof', issue_number: 3, task_id: 8 }),
      adapterReported.draft({
        framework: 'generic',
        action: 'report',
        agent_id: 'ada',
        payload: { taskId: 'x-1', progress: 1, status: 'done', output: 'so' },
      }),
      githubIssueCommented.draft({ repo: 'acme/roof', issue_number: 3, task_id: null }),
    ];
    const streams = (index: number) => (index === 0 ? { stream: STREAM } : {});
    const positions = async (headers: Record<string, string>) => {
      const frames = await received(events, headers, streams);
      await base.close();
      return [...new Set(frames.map(({ id }) => Number.parseInt(id ?? '', 10)))];
    };
    expect(await positions(asAgent('ada'))).to.deep.equal([1, 2, 5]);
    expect(await positions(asAgent('bob'))).to.deep.equal([5]);
    expect(await positions({})).to.deep.equal([1, 2, 3, 4, 5]);
    base = await startHub();
  });

  it('about notifications reach the recipient and operators', async () => {
    const notice = { type: 'mention', title: 'Roof', message: 'so', source_type: 'task', source_id: 7, by: null };
    const forwarded = (recipient: string) =>
      sample(notificationForwarded, {
        ...{ notification_id: 1, recipient, notification_type: 'mention', title: 'Roof' },
        message: { message_id: 1, to_agent_id: 1, content: 'Roof' },
      });
    const events = [
      notificationRaised.draft({ recipient: 'ada', ...notice }),
      notificationRaised.draft({ recipient: 'listener', ...notice }),
      forwarded('ada'),
      forwarded('bob'),
    ];
    const types = async (headers: Record<string, string>) => {
      // On the stream of a task, like those that come with its events.
      const frames = await received(events, headers, (index) => (index < 2 ? { stream: STREAM, revision: index } : {}));
      await base.close();
      return frames.map(({ type, data }) => [type, data.recipient ?? data.to_agent ?? data.description]);
    };
    const of = (name: string) => [
      ['chat.message', name],
      ['activity.created', `The notification "Roof" was delivered to ${name}`],
    ];
    const everything = [
      ['notification.created', 'ada'],
      ['notification.created', 'listener'],
      ...of('ada'),
      ...of('bob'),
    ];
    expect(await types(asAgent('ada'))).to.deep.equal([['notification.created', 'ada'], ...of('ada')]);
    expect(await types(asAgent('bob'))).to.deep.equal(of('bob'));
    expect(await types({ ...asAgent('bob'), 'x-role': 'operator' })).to.deep.equal(of('bob'));
    expect(await types({}), 'a viewer').to.deep.equal(everything.slice(1));
    expect(await types({ 'x-role': 'operator' })).to.deep.equal(everything);
    expect(await types({ ...asAgent('bob'), 'x-role': 'admin' })).to.deep.equal(everything);
    base = await startHub();
  });

  it('of a client without a key reach it if it names the agent', async () => {
    const header = { 'x-agent-name': 'ada' };
    const frames = await received([...LIFE], header, onTask);
    expect(frames.map(({ id }) => Number.parseInt(id ?? '', 10)))
      .to.include.members([3, 6])
      .and.not.include(1);
  });

  describe('that are too old', () => {
    const DAY = 86_400_000;
    const days = (index: number) => ({ meta: { at: LOGGED_AT + index * DAY } });
    async function start(past: { after: number; notBefore: number }) {
      base = await startHub({ past: { ...past, from: 1_234, ownAfter: 0 } });
      base.log.events = [0, 1, 2, 3, 4].map((index) =>
        logged(index + 1, registeredAgent({ agent_id: index + 1, name: `agent-${index}` }), 1, days(index)),
      );
      base.log.followed = 5;
    }
    const from = async (id: string) => {
      const stream = await listen({ 'last-event-id': id });
      await stream.until(() => stream.frames.at(-1)?.id === '5');
      return { connected: stream.connected, ids: stream.frames.map((frame) => frame.id) };
    };
    const cut = { from: 1_234 };

    it('by time are omitted, and the connected frame names the limit', async () => {
      await start({ after: 0, notBefore: LOGGED_AT + 2 * DAY });
      expect(await from('0')).to.deep.equal({ connected: cut, ids: ['3.1', '3', '4.1', '4', '5.1', '5'] });
      expect(await from('1.1')).to.deep.equal({ connected: cut, ids: ['3.1', '3', '4.1', '4', '5.1', '5'] });
      expect(await from('2')).to.deep.equal({ connected: null, ids: ['3.1', '3', '4.1', '4', '5.1', '5'] });
      expect(await from('3.1')).to.deep.equal({ connected: null, ids: ['3', '4.1', '4', '5.1', '5'] });
    });

    it('by position are omitted as well', async () => {
      await start({ after: 3, notBefore: 0 });
      expect(await from('0')).to.deep.equal({ connected: cut, ids: ['4.1', '4', '5.1', '5'] });
      expect(await from('2.1')).to.deep.equal({ connected: cut, ids: ['4.1', '4', '5.1', '5'] });
      expect(await from('3')).to.deep.equal({ connected: null, ids: ['4.1', '4', '5.1', '5'] });
    });
  });
});
