/** Conformance: following the log. */
import { expect } from 'chai';
import { UnknownPositionError } from '../../../../shared/errors.ts';
import { BEGINNING, type Followed } from '../../../../shared/ports/event-log.ts';
import { gate } from '../../../support/memory-world.ts';
import {
  errorOf,
  eventsOf,
  followUntil,
  gather,
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

const isCaughtUp = (steps: readonly Followed[]) => steps.at(-1)?.caughtUp === true;

export function followConformance(subject: Subject): void {
  describe('follow', () => {
    it('delivers everything in order from the beginning, then reports that it has caught up', async () => {
      const stream = newStream();
      const { position } = await subject.log.append(stream, newEvents(50), 'none');
      const steps = await followUntil(
        subject.log,
        BEGINNING,
        (all) => isCaughtUp(all) && (all.at(-1)?.position ?? 0) >= position,
      );
      const followed = eventsOf(steps).filter((event) => event.position <= position);
      const read = (await gather(subject.log.readAll())).filter((event) => event.position <= position);
      expect(positionsOf(followed)).to.deep.equal(positionsOf(read));
      expect(followed.filter(inStreams(stream))).to.deep.equal(read.filter(inStreams(stream)));
    });

    it('reports at once at the head that it has caught up, without going back', async () => {
      const { position } = await subject.log.append(newStream(), newEvents(3), 'none');
      const head = await subject.log.head();
      const steps = await followUntil(subject.log, head, isCaughtUp);
      expect(steps.at(-1)?.position).to.be.at.least(head);
      expect(head).to.be.at.least(position);
    });

    it('delivers an event that is appended right after it started at the end', async () => {
      for (let round = 0; round < 10; round++) {
        const stream = newStream();
        const after = await subject.log.head();
        const following = followUntil(subject.log, after, sawEvents(1, stream));
        const event = newEvent(round);
        await subject.other.append(stream, [event], 'none');
        expect(idsOf(eventsOf(await following).filter(inStreams(stream)))).to.deep.equal([event.id]);
      }
    });

    it('delivers an event appended by any process, and then has caught up again', async () => {
      const stream = newStream();
      const after = await subject.log.head();
      let appended = 0;
      const seen = sawEvents(10, stream);
      const steps = await followUntil(
        subject.log,
        after,
        (all) => seen(all) && isCaughtUp(all),
        async (all) => {
          // Append the next one only when the one before it was delivered and the end was reached.
          if (!isCaughtUp(all) || eventsOf(all).filter(inStreams(stream)).length < appended || appended === 10) return;
          await (appended++ % 2 ? subject.log : subject.other).append(stream, [newEvent(appended)], 'any');
        },
      );
      expect(revisionsOf(eventsOf(steps).filter(inStreams(stream)))).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });

    it('resumes inside a batch, from the position of every event and of every step', async () => {
      const stream = newStream();
      const start = await subject.log.head();
      await subject.log.append(stream, newEvents(8), 'none');
      const steps = await followUntil(subject.log, start, sawEvents(8, stream));
      const events = eventsOf(steps).filter(inStreams(stream));
      for (const [index, { position }] of events.slice(0, -1).entries()) {
        const rest = await followUntil(subject.log, position, sawEvents(7 - index, stream));
        expect(eventsOf(rest).filter(inStreams(stream))).to.deep.equal(events.slice(index + 1));
      }
      for (const [index, { position }] of steps.entries()) {
        const missing = eventsOf(steps.slice(index + 1)).filter(inStreams(stream));
        if (missing.length === 0) continue;
        const rest = await followUntil(subject.log, position, sawEvents(missing.length, stream));
        expect(eventsOf(rest).filter(inStreams(stream))).to.deep.equal(missing);
      }
    });

    it('returns increasing positions that cover the events and skip none', async () => {
      const stream = newStream();
      const start = await subject.log.head();
      const following = followUntil(subject.log, start, sawEvents(300, stream));
      for (let n = 0; n < 30; n++) await subject.log.append(stream, newEvents(10), 'any');
      let before = start;
      for (const step of await following) {
        for (const event of step.events) expect(event.position).to.be.greaterThan(before);
        expect(step.position).to.be.at.least(step.events.at(-1)?.position ?? before);
        before = step.position;
      }
    });

    it('delivers every event once and in order to a slow consumer, however far behind', async () => {
      const stream = newStream();
      const start = await subject.log.head();
      const total = 3 * subject.followBuffer;
      const size = subject.followBuffer / 4;
      let held = true;
      const steps = await followUntil(subject.log, start, sawEvents(total, stream), async () => {
        if (!held) return;
        held = false;
        // While this step is held, far more is appended than any buffer may take.
        for (let n = 0; n < total; n += size) await subject.other.append(stream, newEvents(size, n), 'any');
      });
      const numbers = eventsOf(steps)
        .filter(inStreams(stream))
        .map(({ data }) => data.n);
      expect(numbers).to.deep.equal(Array.from({ length: total }, (_, n) => n));
    });

    it('supports independent followers', async () => {
      const stream = newStream();
      const start = await subject.log.head();
      const held = gate();
      const slow = followUntil(subject.log, start, sawEvents(200, stream), held.wait);
      const fast = followUntil(subject.log, start, sawEvents(200, stream));
      for (let n = 0; n < 20; n++) await subject.log.append(stream, newEvents(10), 'any');
      const fastEvents = eventsOf(await fast).filter(inStreams(stream));
      held.open();
      expect(eventsOf(await slow).filter(inStreams(stream))).to.deep.equal(fastEvents);
      expect(fastEvents).to.deep.equal(await readAfter(subject.log, start, [stream]));
    });

    it('throws UnknownPositionError at once for a position that is not in the log', async () => {
      const { position } = await subject.log.append(newStream(), newEvents(3), 'none');
      for (const after of [position + 1_000_000_000, Number.MAX_SAFE_INTEGER]) {
        const error = await errorOf(followUntil(subject.log, after, () => true));
        expect(error).to.be.instanceOf(UnknownPositionError).and.to.have.property('position', after);
      }
      // If positions are byte offsets, there are other positions between two events.
      const all = positionsOf(await gather(subject.log.readAll()));
      const between = [position - 1, Math.floor(position / 2)].filter((one) => one > 0 && !all.includes(one));
      for (const after of between) {
        expect(await errorOf(followUntil(subject.log, after, () => true))).to.be.instanceOf(UnknownPositionError);
      }
    });

    it('starts from a position that another process has just written', async () => {
      for (let round = 0; round < 10; round++) {
        const { position } = await subject.other.append(newStream(), newEvents(1), 'none');
        const steps = await followUntil(subject.log, position, isCaughtUp);
        expect(eventsOf(steps).every((event) => event.position > position)).to.equal(true);
      }
    });

    it('ends cleanly on abort: before it starts, while it waits, and between two steps', async () => {
      const after = await subject.log.head();
      const pull = async (signal: AbortSignal, onStep: (step: Followed) => void) => {
        for await (const step of subject.log.follow({ after, signal })) onStep(step);
      };
      await pull(AbortSignal.abort(), () => {
        throw new Error('an aborted follower gave a step');
      });
      const between = new AbortController();
      await pull(between.signal, () => between.abort());
      const waiting = new AbortController();
      await pull(waiting.signal, (step) => {
        if (step.caughtUp) setImmediate(() => waiting.abort());
      });
    });

    it('ends when the loop is left, and another follower can start', async () => {
      const stream = newStream();
      const after = await subject.log.head();
      await subject.log.append(stream, newEvents(5), 'none');
      for await (const step of subject.log.follow({ after, signal: new AbortController().signal })) {
        if (step.events.length > 0) break;
      }
      expect(
        eventsOf(await followUntil(subject.log, after, sawEvents(5, stream))).filter(inStreams(stream)),
      ).to.have.length(5);
    });
  });
}
