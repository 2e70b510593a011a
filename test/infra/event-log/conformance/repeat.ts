/** Conformance: repeating an append, entirely or in part. */
import { expect } from 'chai';
import fc from 'fast-check';
import { ConflictError } from '../../../../shared/errors.ts';
import type { Appended, Expectation, NewEvent } from '../../../../shared/ports/event-log.ts';
import { runs } from '../../../support/runs.ts';
import { expectConflict, gather, idsOf, newEvent, newEvents, newStream, readAfter, type Subject } from './subject.ts';

export function repeatConformance(subject: Subject): void {
  describe('a repeated append', () => {
    for (const expected of ['any', 'none', 1] as const) {
      it(`returns the same result without duplicates after a lost response, expecting ${expected}`, async () => {
        const stream = newStream();
        if (typeof expected === 'number') await subject.log.append(stream, newEvents(expected + 1), 'none');
        const start = await subject.log.head();
        const batch = newEvents(3);
        const answer = await subject.log.append(stream, batch, expected);
        expect(await subject.log.append(stream, batch, expected)).to.deep.equal(answer);
        // And when others have written behind it.
        await subject.log.append(stream, newEvents(2), 'any');
        expect(await subject.log.append(stream, batch, expected)).to.deep.equal(answer);
        const written = await readAfter(subject.log, start, [stream]);
        expect(idsOf(written).slice(0, 3)).to.deep.equal(idsOf(batch));
        expect(written).to.have.length(5);
      });
    }

    it('returns the same result from another process after a lost response', async () => {
      const stream = newStream();
      const batch = newEvents(2);
      const answer = await subject.log.append(stream, batch, 'none');
      expect(await subject.other.append(stream, batch, 'none')).to.deep.equal(answer);
      expect(await gather(subject.log.readStream(stream))).to.have.length(2);
    });

    it('returns the same result with another expectation, even one that would be met', async () => {
      const stream = newStream();
      const event = newEvent();
      const answer = await subject.log.append(stream, [event], 'none');
      for (const expected of ['any', 'none', 0, 7] satisfies Expectation[]) {
        expect(await subject.log.append(stream, [event], expected)).to.deep.equal(answer);
      }
      expect(await gather(subject.log.readStream(stream))).to.have.length(1);
    });

    it('writes one event and returns the same result if sent twice concurrently', async () => {
      const stream = newStream();
      const event = newEvent();
      const answers = await Promise.all([
        subject.log.append(stream, [event], 'none'),
        subject.log.append(stream, [event], 'none'),
        subject.other.append(stream, [event], 'none'),
      ]);
      expect(new Set(answers.map(({ position }) => position)).size).to.equal(1);
      expect(await gather(subject.log.readStream(stream))).to.have.length(1);
    });

    it('throws ConflictError and writes nothing if only half of the batch is known', async () => {
      const stream = newStream();
      const known = newEvent(0);
      await subject.log.append(stream, [known], 'none');
      for (const expected of ['any', 'none', 0] satisfies Expectation[]) {
        await expectConflict(subject.log.append(stream, [known, newEvent(1)], expected));
        await expectConflict(subject.log.append(stream, [newEvent(1), known], expected));
      }
      expect(idsOf(await gather(subject.log.readStream(stream)))).to.deep.equal([known.id]);
    });

    it('throws ConflictError and writes nothing for ids of another stream, if the store can detect it', async () => {
      const [one, two] = [newStream(), newStream()];
      const batch = newEvents(2);
      await subject.log.append(one, batch, 'none');
      const repeated = subject.log.append(two, batch, 'none');
      if (subject.idsPerStream) await repeated;
      else await expectConflict(repeated);
      const there = subject.idsPerStream ? idsOf(batch) : [];
      expect(idsOf(await gather(subject.log.readStream(two)))).to.deep.equal(there);
      if (subject.idsPerStream) return;
      for (const expected of ['any', 'none'] satisfies Expectation[])
        await expectConflict(subject.log.append(two, [newEvent(), batch[0] as NewEvent], expected));
      await subject.log.append(two, [newEvent()], 'none');
    });

    it('behaves like the model in any sequence of appends and repetitions', async () => {
      const step = fc.record({
        stream: fc.integer({ min: 0, max: 2 }),
        size: fc.integer({ min: 1, max: 4 }),
        expected: fc.oneof(fc.constantFrom('any', 'none', 'current' as const), fc.integer({ min: 0, max: 6 })),
        // Repeats an earlier append of the stream, or mixes one of its events into a new batch.
        reuse: fc.option(fc.record({ which: fc.nat(), how: fc.constantFrom('whole', 'first', 'last') }), { freq: 3 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
          const streams = [newStream(), newStream(), newStream()];
          const model = new Map(streams.map((stream) => [stream, { ids: [] as string[], appends: [] as Done[] }]));
          for (const { stream: index, size, expected: wanted, reuse } of steps) {
            const stream = streams[index] ?? '';
            const { ids, appends } = model.get(stream) ?? { ids: [], appends: [] };
            const last = ids.length - 1;
            const expected: Expectation = wanted !== 'current' ? (wanted as Expectation) : last < 0 ? 'none' : last;
            const old = reuse ? appends[reuse.which % Math.max(appends.length, 1)] : undefined;
            if (old && reuse?.how === 'whole') {
              expect(await subject.log.append(stream, old.events, expected)).to.deep.equal(old.answer);
              continue;
            }
            const fresh = newEvents(size);
            const known = old?.events[0];
            const events = !known ? fresh : reuse?.how === 'first' ? [known, ...fresh] : [...fresh, known];
            const holds = expected === 'any' || (expected === 'none' ? last < 0 : expected === last);
            const outcome = await subject.log.append(stream, events, expected).catch((error: unknown) => error);
            if (known || !holds) {
              expect(outcome).to.be.instanceOf(ConflictError);
              continue;
            }
            expect(outcome).to.have.property('revision', last + size);
            ids.push(...idsOf(events));
            appends.push({ events, answer: outcome as Appended });
          }
          for (const [stream, { ids }] of model) {
            expect(idsOf(await gather(subject.log.readStream(stream)))).to.deep.equal(ids);
          }
        }),
        { numRuns: runs(6, 12) },
      );
    });
  });
}

interface Done {
  readonly events: readonly NewEvent[];
  readonly answer: Appended;
}
