/**
 * The conformance suite of the event log's port: what `shared/ports/event-log.ts` promises, for every adapter.
 *
 * The store may hold other data, and others may write to it at the same time: each test uses its own stream names,
 * starts from the current head, and looks only at its own events.
 */
import { appendConformance } from './conformance/append.ts';
import { followConformance } from './conformance/follow.ts';
import { lifeConformance } from './conformance/life.ts';
import { orderConformance } from './conformance/order.ts';
import { readConformance } from './conformance/read.ts';
import { repeatConformance } from './conformance/repeat.ts';
import type { OpenLog, Subject } from './conformance/subject.ts';

export type { OpenedLog, OpenLog } from './conformance/subject.ts';

/**
 * @param open opens a log on the adapter's store; called once for most tests and once more by each test that closes
 *   its log. `other` opens a second process's view of the same store; what it opens is closed by the suite.
 */
export function describeEventLog(name: string, open: OpenLog): void {
  describe(`event log: ${name}`, () => {
    const subject = {} as Subject;
    const closers: (() => Promise<void>)[] = [];

    before(async () => {
      const opened = await open();
      closers.push(() => opened.close());
      const other = await opened.other?.();
      if (other) closers.push(() => other.close());
      const { log, followBuffer = 4_000, idsPerStream = false } = opened;
      Object.assign(subject, { log, other: other ?? log, followBuffer, idsPerStream });
    });

    after(async () => {
      for (const close of closers.reverse()) await close();
    });

    appendConformance(subject);
    repeatConformance(subject);
    orderConformance(subject);
    // Before those that fill the log: some follow it from the beginning.
    followConformance(subject);
    readConformance(subject);
    lifeConformance(open);
  });
}
