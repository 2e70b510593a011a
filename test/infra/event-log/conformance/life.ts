/** Conformance: closing. Each test opens a log of its own. */
import { expect } from 'chai';
import { LogUnavailableError } from '../../../../shared/errors.ts';
import { BEGINNING, type EventLog } from '../../../../shared/ports/event-log.ts';
import { gate } from '../../../support/memory-world.ts';
import { errorOf, gather, idsOf, newEvent, newEvents, newStream, type OpenLog } from './subject.ts';

export function lifeConformance(open: OpenLog): void {
  describe('close', () => {
    it('settles appends in flight, and keeps all acknowledged events', async () => {
      const opened = await open();
      const reader = (await opened.other?.()) ?? undefined;
      const stream = newStream();
      const events = newEvents(50);
      const outcomes = events.map((event) => opened.log.append(stream, [event], 'any'));
      const [settled] = await Promise.all([Promise.allSettled(outcomes), opened.log.close()]);
      const acknowledged = events.filter((_, n) => settled[n]?.status === 'fulfilled');
      expect(acknowledged).to.have.length(50);
      if (reader) {
        expect(idsOf(await gather(reader.readStream(stream))).sort()).to.deep.equal(idsOf(acknowledged).sort());
        await reader.close();
      }
      await opened.close();
    });

    it('ends followers cleanly', async () => {
      const opened = await open();
      const after = await opened.log.head();
      const caughtUp = gate();
      const following = (async () => {
        for await (const step of opened.log.follow({ after, signal: new AbortController().signal })) {
          if (step.caughtUp) caughtUp.open();
        }
      })();
      await caughtUp.wait();
      await opened.log.close();
      await following;
      await opened.close();
    });

    it('makes later calls throw LogUnavailableError', async () => {
      const opened = await open();
      await opened.log.append(newStream(), [newEvent()], 'any');
      await opened.log.close();
      // Whether a read throws at the call or at the first pull is the adapter's choice.
      const calls: ((log: EventLog) => Promise<unknown>)[] = [
        (log) => log.append(newStream(), [newEvent()], 'any'),
        (log) => log.head(),
        async (log) => gather(log.readStream(newStream())),
        async (log) => gather(log.readAll()),
        async (log) => {
          for await (const step of log.follow({ after: BEGINNING, signal: new AbortController().signal })) {
            throw new Error(`a closed log gave a step at ${step.position}`);
          }
        },
      ];
      for (const call of calls) {
        expect(await errorOf((async () => call(opened.log))())).to.be.instanceOf(LogUnavailableError);
      }
      await opened.close();
    });
  });
}
