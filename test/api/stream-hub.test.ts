/** The hub on a log by hand: what a client gets whose process is behind another one, or whose log is gone. */
import { expect } from 'chai';
import { UnknownPositionError } from '../../shared/errors.ts';
import { signInFailed } from '../../shared/events/auth/sign-in.ts';
import { fixtureForEach } from '../support/fixture.ts';
import { registeredAgent } from '../support/kit.ts';
import { gate } from '../support/memory-world.ts';
import { openStream } from '../support/stream.ts';
import { logged, startHub } from '../support/stream-hub.ts';
import { until } from '../support/until.ts';

/** Gives two frames: `<position>.1` and `<position>`. */
const registered = (position: number, workspace = 1) =>
  logged(
    position,
    registeredAgent({
      agent_id: position,
      name: `agent-${position}`,
    }),
    workspace,
  );

const fromNow: Record<string, string> = {};
const fromTheStart: Record<string, string> = { 'last-event-id': '0' };

describe('stream hub: heartbeats', () => {
  const timers: { ms: number; run: () => void; isCancelled: boolean }[] = [];
  const base = fixtureForEach(() =>
    startHub({
      every(ms, run) {
        const timer = { ms, run, isCancelled: false };
        timers.push(timer);
        return {
          cancel() {
            timer.isCancelled = true;
          },
        };
      },
    }),
  );

  it('every client that has received everything gets a comment every 15 seconds, until the hub closes', async () => {
    const { hub, url } = base;
    const timer = timers.at(-1);
    expect(timer?.ms).to.equal(15_000);
    const stream = await openStream(url, fromNow);
    await until('it is served', () => hub.clients === 1);
    for (const count of [1, 2]) {
      timer?.run();
      await stream.until(() => stream.comments.length === count);
    }
    expect(stream.comments).to.deep.equal([': heartbeat', ': heartbeat']);
    stream.close();
    await hub.close();
    expect(timer?.isCancelled).to.equal(true);
  });
});

describe('stream hub', () => {
  const base = fixtureForEach(startHub);
  beforeEach(async () => {
    base.log.events = [1, 2, 3, 4, 5].map((position) => registered(position));
    base.log.followed = 3;
  });

  for (const [id, expected] of [
    ['4', ['5.1', '5']],
    ['4.1', ['4', '5.1', '5']],
    ['5', []],
    ['3', ['4.1', '4', '5.1', '5']],
    ['2.1', ['2', '3.1', '3', '4.1', '4', '5.1', '5']],
  ] as const) {
    it(`a client that resumes after ${id} from a process that was ahead receives no event twice`, async () => {
      const { log, hub } = base;
      const stream = await openStream(base.url, { 'last-event-id': id });
      await until('it is served', () => hub.clients === 1);
      log.follow(4);
      log.follow(5);
      log.events.push(registered(6));
      log.follow(6);
      await stream.until(() => stream.frames.at(-1)?.id === '6');
      const ids = stream.frames.map((frame) => frame.id);
      expect(ids.slice(0, -2)).to.deep.equal(expected);
      stream.close();
    });
  }

  it('a client that has caught up while an event is delivered to others receives that event', async () => {
    const { log, hub } = base;
    const live = await openStream(base.url, fromNow);
    await until('it is served', () => hub.clients === 1);
    const key = gate();
    let opened = 0;
    log.opening = () => {
      opened++;
      return key.wait();
    };
    const resumed = await openStream(base.url, { 'last-event-id': '2' });
    await until('it waits for the event before', () => opened === 1);
    log.follow(4);
    await until('the others wait for the event', () => opened === 2);
    key.open();
    log.opening = undefined;
    await live.until(() => live.frames.at(-1)?.id === '4');
    log.follow(5);
    await resumed.until(() => resumed.frames.at(-1)?.id === '5');
    expect(resumed.frames.map(({ id }) => id)).to.deep.equal(['3.1', '3', '4.1', '4', '5.1', '5']);
    live.close();
    resumed.close();
  });

  it('an id that is not in the log is rejected before anything is written', async () => {
    const response = await fetch(base.url, { headers: { 'last-event-id': '77' } });
    expect([response.status, await response.text()]).to.deep.equal([400, 'UnknownPositionError']);
    expect(base.hub.clients).to.equal(0);
  });

  it('a client that leaves while its id is looked up is removed', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let asked = false;
    base.log.reading = () => {
      asked = true;
      return held;
    };
    const abort = new AbortController();
    const asking = fetch(base.url, { headers: { 'last-event-id': '2' }, signal: abort.signal }).catch(() => undefined);
    await until('it is looked up', () => asked);
    abort.abort();
    await asking;
    await new Promise((resolve) => setTimeout(resolve, 50));
    release();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(base.hub.clients).to.equal(0);
  });

  it('if the log cannot be followed, streams end, and the next client makes the hub follow it again', async () => {
    const { log, hub } = base;
    const first = await openStream(base.url, {});
    await until('it is served', () => hub.clients === 1);
    log.broken = new UnknownPositionError(3);
    log.wake();
    await until('its stream ends', () => hub.clients === 0);
    first.close();
    log.broken = undefined;
    const second = await openStream(base.url, {});
    await until('it is served', () => hub.clients === 1);
    log.follow(5);
    await second.until(() => second.frames.at(-1)?.id === '5');
    second.close();
  });

  it('each workspace gets only its own frames, live and while catching up', async () => {
    const { log } = base;
    log.events = [1, 2, 3, 4, 5, 6, 7, 8].map((position) => registered(position, position % 2 === 0 ? 2 : 1));
    log.followed = 4;
    const streams = await Promise.all(
      ['1', '2'].flatMap((workspace) =>
        [fromNow, fromTheStart].map((resume) =>
          openStream(base.url, { 'x-workspace': workspace, 'x-user': workspace, ...resume }),
        ),
      ),
    );
    log.follow(8);
    const expected = [
      ['5.1', '5', '7.1', '7'],
      ['1.1', '1', '3.1', '3', '5.1', '5', '7.1', '7'],
      ['6.1', '6', '8.1', '8'],
      ['2.1', '2', '4.1', '4', '6.1', '6', '8.1', '8'],
    ];
    for (const [index, stream] of streams.entries()) {
      const ids = expected[index] as string[];
      await stream.until(() => stream.frames.length >= ids.length);
      expect(stream.frames.map((frame) => frame.id)).to.deep.equal(ids);
      expect(new Set(stream.frames.map((frame) => frame.data.workspace_id))).to.deep.equal(
        new Set([index < 2 ? 1 : 2]),
      );
    }
    // Nothing of the other one is on its way either: what comes next is the next of its own.
    log.events.push(registered(9, 1), registered(10, 2));
    log.follow(10);
    for (const [index, stream] of streams.entries()) {
      await stream.until(() => stream.frames.length >= (expected[index] as string[]).length + 2);
      expect(stream.frames.at(-1)?.id).to.equal(index < 2 ? '9' : '10');
      stream.close();
    }
  });

  it('frames for a role reach only callers with that role; ids are the same live and catching up', async () => {
    const { log } = base;
    const failed = (position: number) =>
      logged(
        position,
        signInFailed.draft({ username: 'hunter2', user_id: null, reason: 'user_not_found', month: '2026-03' }),
      );
    log.events = [failed(1), registered(2), failed(3), registered(4)];
    log.followed = 2;
    const listeners = await Promise.all(
      ['viewer', 'operator', 'admin'].flatMap((role, user) =>
        [fromNow, fromTheStart].map(async (resume: Record<string, string>) => {
          const headers = { 'x-role': role, 'x-user': `${user}`, ...resume };
          return { role, all: 'last-event-id' in resume, stream: await openStream(base.url, headers) };
        }),
      ),
    );
    log.follow(4);
    for (const { role, all, stream } of listeners) {
      const ids = ['2.1', '2', '3.1', '3', '4.1', '4'];
      if (role === 'admin') ids.unshift('1.1', '1');
      const expected = ids.filter((id) => (all || id >= '3') && (role === 'admin' || !/^[13]/.test(id)));
      await stream.until(() => stream.frames.at(-1)?.id === '4');
      expect(
        stream.frames.map((frame) => frame.id),
        role,
      ).to.deep.equal(expected);
      if (role !== 'admin') expect(JSON.stringify(stream.frames)).not.to.match(/hunter2|192\.0\.2|security/);
      stream.close();
    }
  });
});
