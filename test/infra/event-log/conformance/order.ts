/** Conformance: one total order without gaps, the same for every reader, while many write. */
import { expect } from 'chai';
import type { EventLog } from '../../../../shared/ports/event-log.ts';
import {
  eventsOf,
  followUntil,
  idsOf,
  inStreams,
  newEvent,
  newEvents,
  newStream,
  positionsOf,
  readAfter,
  revisionsOf,
  type Subject,
  sawEvents,
} from './subject.ts';

const WRITERS = 16;
const APPENDS = 15;

/** Writers on streams of their own and on one that they share; every third append is a batch. Gives all ids. */
async function writeAtOnce(logs: readonly EventLog[], streams: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  const writer = async (n: number) => {
    const log = logs[n % logs.length] as EventLog;
    for (let index = 0; index < APPENDS; index++) {
      const events = newEvents(index % 3 === 0 ? 5 : 1);
      const stream = streams[index % 4 === 0 ? 0 : n % streams.length] ?? '';
      await log.append(stream, events, 'any');
      ids.push(...idsOf(events));
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, n) => writer(n)));
  return ids;
}

export function orderConformance(subject: Subject): void {
  describe('order', () => {
    it('is total, and the same for two readers and for both directions', async () => {
      const streams = Array.from({ length: 8 }, newStream);
      const start = await subject.log.head();
      const written = await writeAtOnce([subject.log, subject.other], streams);
      const one = await readAfter(subject.log, start, streams);
      const two = await readAfter(subject.other, start, streams);
      expect(two).to.deep.equal(one);
      expect(idsOf(one).sort()).to.deep.equal(written.sort());
      const positions = positionsOf(one);
      for (const [index, position] of positions.entries()) {
        expect(Number.isSafeInteger(position)).to.equal(true);
        expect(position).to.be.greaterThan(positions[index - 1] ?? start);
      }
      for (const stream of streams) {
        const revisions = revisionsOf(one.filter(inStreams(stream)));
        expect(revisions).to.deep.equal(revisions.map((_, revision) => revision));
      }
      const back: string[] = [];
      for await (const batch of subject.log.readAll({ direction: 'backwards' })) {
        back.push(...idsOf(batch.filter(inStreams(...streams))));
        if ((batch.at(-1)?.position ?? 0) <= start) break;
      }
      expect(back.reverse()).to.deep.equal(idsOf(one));
    });

    it('uses the log’s documented distance between positions', async () => {
      const { log } = subject;
      const start = await log.head();
      const stream = newStream();
      // One append, so that no event of others lies between them.
      await log.append(
        stream,
        Array.from({ length: 20 }, (_, n) => newEvent(n, { meta: { text: 'x'.repeat(500) } })),
        'none',
      );
      const positions = positionsOf(await readAfter(log, start, [stream]));
      const steps = positions.slice(1).map((position, n) => position - (positions[n] ?? 0));
      expect(steps).to.have.length(19);
      const mean = steps.reduce((sum, step) => sum + step, 0) / steps.length;
      if (log.stride === 1) expect(steps).to.deep.equal(steps.map(() => 1));
      else expect(mean).to.be.within(log.stride / 5, log.stride * 5);
    });

    it('keeps a batch contiguous in its stream', async () => {
      const stream = newStream();
      const batches = Array.from({ length: 30 }, () => newEvents(4));
      const start = await subject.log.head();
      await Promise.all(batches.map((batch, n) => (n % 2 ? subject.log : subject.other).append(stream, batch, 'any')));
      const ids = idsOf(await readAfter(subject.log, start, [stream]));
      expect(ids).to.have.length(120);
      for (const batch of batches) {
        const at = ids.indexOf(batch[0]?.id ?? '');
        expect(ids.slice(at, at + 4)).to.deep.equal(idsOf(batch));
      }
    });

    it('is the same for a follower, which sees every event once, even when others overtake a slow writer', async () => {
      const streams = Array.from({ length: 8 }, newStream);
      const start = await subject.log.head();
      const count = WRITERS * APPENDS + WRITERS * Math.ceil(APPENDS / 3) * 4;
      const followers = [subject.log, subject.other].map((log) =>
        followUntil(log, start, sawEvents(count, ...streams)),
      );
      const written = await writeAtOnce([subject.log, subject.other], streams);
      expect(written).to.have.length(count);
      const all = await readAfter(subject.log, start, streams);
      for (const steps of await Promise.all(followers)) {
        expect(eventsOf(steps).filter(inStreams(...streams))).to.deep.equal(all);
      }
    });
  });
}
