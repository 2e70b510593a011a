/** The live stream: frames, resuming, slow clients, cursors that it refuses. */
import { type IncomingMessage, request } from 'node:http';
import { expect } from 'chai';
import { call, TEST_KEY, type TestService } from '../../support/service.ts';
import { openStream } from '../../support/stream.ts';
import { until } from '../../support/until.ts';
import { makeAgent } from '../../support/worlds/monitoring.ts';

export function describeEvents(service: () => TestService): void {
  describe('GET /api/events', () => {
    let base: TestService;
    before(() => {
      base = service();
    });
    const agent = (name: string) => makeAgent(base, name);
    const headers = { 'x-api-key': TEST_KEY };
    const names = (stream: { frames: { type: string; data: { name: string } }[] }) =>
      stream.frames.filter((frame) => frame.type === 'agent.created').map((frame) => frame.data.name);

    it('sends frames with id, workspace and milliseconds, and the headers of a stream', async () => {
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

    it('resumes after any id, even between the frames of one event, without gaps or duplicates', async () => {
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
      const since = await openStream(`${base.url}/api/events?since=${ids[5]}`, headers);
      await since.until(() => since.frames.length >= 6);
      expect(since.frames[0]?.id).to.equal(ids[6]);
      since.close();
    });

    it('from the beginning: everything that was ever streamed, then live events', async () => {
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

    it('a client that does not read falls back to the log and loses nothing', async function () {
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

    it('refuses an invalid cursor', async () => {
      expect((await call(base, 'GET', '/api/events?since=abc')).status).to.equal(400);
      expect((await call(base, 'GET', '/api/events', undefined, { 'last-event-id': '-3' })).status).to.equal(400);
    });

    it('refuses a cursor of another log, with a helpful message', async () => {
      const { eventLog } = base.service.core;
      const positions = new Set<number>();
      for await (const events of eventLog.readAll()) for (const event of events) positions.add(event.position);
      const head = await eventLog.head();
      const between = [head - 1, head - 2].filter((position) => !positions.has(position));
      for (const position of [head + 1_000_000_000, Number.MAX_SAFE_INTEGER, ...between]) {
        for (const id of [`${position}`, `${position}.1`]) {
          const answer = await call(base, 'GET', '/api/events', undefined, { 'last-event-id': id });
          expect(answer.status).to.equal(400);
          expect(answer.body).to.include({ code: 'UNKNOWN_EVENT_ID' });
          expect(answer.body.error).to.match(/^There is no frame .* in this log, .* connect without an id\.$/);
        }
        expect((await call(base, 'GET', `/api/events?since=${position}`)).status).to.equal(400);
      }
    });
  });
}
