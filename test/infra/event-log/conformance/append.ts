/** Conformance: appending, expectations, limits, racers. */
import { expect } from 'chai';
import { ConflictError, EventTooLargeError, LogUnavailableError } from '../../../../shared/errors.ts';
import { MAX_APPEND_BYTES, MAX_APPEND_EVENTS, type NewEvent } from '../../../../shared/ports/event-log.ts';
import { runs } from '../../../support/runs.ts';
import {
  errorOf,
  expectConflict,
  gather,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  readAfter,
  revisionsOf,
  type Subject,
} from './subject.ts';

const RACERS = 50;
/** Each of them appends as often as there are others before it. */
const RETRIERS = runs(25, 50);

export function appendConformance(subject: Subject): void {
  describe('append', () => {
    it('sends nothing once its caller has cancelled it, whatever else is appended at that moment', async () => {
      const [one, other] = [newStream(), newStream()];
      const [given, kept] = await Promise.allSettled([
        subject.log.append(one, newEvents(2), 'none', AbortSignal.abort()),
        subject.log.append(other, newEvents(2), 'none', new AbortController().signal),
      ]);
      expect(given.status === 'rejected' && given.reason).to.be.instanceOf(LogUnavailableError);
      expect(kept.status === 'fulfilled' && kept.value.revision).to.equal(1);
      expect(await gather(subject.other.readStream(one))).to.deep.equal([]);
    });

    it('returns the appended data: Unicode, big integers as strings, nested data, metadata', async () => {
      const stream = newStream();
      const events: NewEvent[] = [
        newEvent(0, {
          type: 'Ereignis.Größe-Ω',
          data: {
            text: 'naïve 日本語 العربية 👩‍👩‍👧‍👦 e\u0301 "quoted" \\ / \t\n\u2028',
            'key with 💥 and "quotes"': null,
            bigInteger: '123456789012345678901234567890',
            largest: Number.MAX_SAFE_INTEGER,
            smallest: Number.MIN_SAFE_INTEGER,
            fraction: 0.1,
            tiny: 5e-324,
            yes: true,
            nested: { list: [1, 'two', [3, [{}]], { four: { five: [] } }], empty: {} },
            constructor: 'a key like any other',
          },
          meta: { actor: { id: 'ünï', roles: ['a', 'b'] }, correlationId: '1' },
        }),
        newEvent(1, { data: {}, meta: {} }),
      ];
      await subject.log.append(stream, events, 'none');
      const read = await gather(subject.other.readStream(stream));
      expect(read.map(({ id, type, data, meta }) => ({ id, type, data, meta }))).to.deep.equal(events);
      expect(read.map((event) => event.stream)).to.deep.equal([stream, stream]);
    });

    it('preserves a NUL character and a lone surrogate inside a string', async () => {
      const stream = newStream();
      const data = { nul: 'before\u0000after', half: 'x\ud83d', otherHalf: '\ude00y' };
      await subject.log.append(stream, [newEvent(0, { data, meta: data })], 'any');
      const [event] = await gather(subject.log.readStream(stream));
      expect(event?.data).to.deep.equal(data);
      expect(event?.meta).to.deep.equal(data);
    });

    it('returns the revision and position of the last event written', async () => {
      const stream = newStream();
      const first = await subject.log.append(stream, newEvents(3), 'any');
      const second = await subject.log.append(stream, newEvents(2), 'any');
      const read = await gather(subject.log.readStream(stream));
      expect(revisionsOf(read)).to.deep.equal([0, 1, 2, 3, 4]);
      expect(first).to.deep.equal({ revision: 2, position: read[2]?.position });
      expect(second).to.deep.equal({ revision: 4, position: read[4]?.position });
    });

    it('makes an acknowledged append visible at once to every reader', async () => {
      const stream = newStream();
      for (let revision = 0; revision < 30; revision++) {
        const { position } = await subject.log.append(stream, [newEvent(revision)], 'any');
        const [last] = await gather(subject.other.readStream(stream, { direction: 'backwards', limit: 1 }));
        expect(last?.revision).to.equal(revision);
        expect(await subject.other.head()).to.be.at.least(position);
      }
    });

    it("accepts 'none' only for a stream without events", async () => {
      const stream = newStream();
      expect((await subject.log.append(stream, [newEvent()], 'none')).revision).to.equal(0);
      await expectConflict(subject.log.append(stream, [newEvent()], 'none'), 0);
      expect(await gather(subject.log.readStream(stream))).to.have.length(1);
    });

    it('accepts an exact revision only if it is that of the last event', async () => {
      const stream = newStream();
      await expectConflict(subject.log.append(stream, [newEvent()], 0), -1);
      await subject.log.append(stream, newEvents(3), 'none');
      expect((await subject.log.append(stream, [newEvent(3)], 2)).revision).to.equal(3);
      await expectConflict(subject.log.append(stream, [newEvent()], 2), 3);
      await expectConflict(subject.log.append(stream, [newEvent()], 0), 3);
      await expectConflict(subject.log.append(stream, [newEvent()], 4), 3);
      expect(revisionsOf(await gather(subject.log.readStream(stream)))).to.deep.equal([0, 1, 2, 3]);
    });

    it('writes a batch completely or not at all', async () => {
      const stream = newStream();
      const start = await subject.log.head();
      const batch = newEvents(20);
      await subject.log.append(stream, batch, 'none');
      await expectConflict(subject.log.append(stream, newEvents(20), 'none'), 19);
      await expectConflict(subject.log.append(stream, newEvents(20), 18), 19);
      expect(idsOf(await readAfter(subject.log, start, [stream]))).to.deep.equal(idsOf(batch));
    });

    it('throws EventTooLargeError and writes nothing above the size limit, and writes at the limit', async () => {
      const stream = newStream();
      const sized = (bytes: number) => {
        const overhead = JSON.stringify({ text: '' }).length + JSON.stringify({}).length;
        return newEvent(0, { data: { text: 'x'.repeat(bytes - overhead) }, meta: {} });
      };
      expect(await errorOf(subject.log.append(stream, [sized(MAX_APPEND_BYTES + 1)], 'any'))).to.be.instanceOf(
        EventTooLargeError,
      );
      const half = MAX_APPEND_BYTES / 2;
      expect(await errorOf(subject.log.append(stream, [sized(half), sized(half + 1)], 'any'))).to.be.instanceOf(
        EventTooLargeError,
      );
      // Three bytes per character, because the limit is in bytes.
      const wide = newEvent(0, { data: { text: '日'.repeat(MAX_APPEND_BYTES / 3 + 1) } });
      expect(await errorOf(subject.log.append(stream, [wide], 'any'))).to.be.instanceOf(EventTooLargeError);
      expect(await gather(subject.log.readStream(stream))).to.have.length(0);
      expect((await subject.log.append(stream, [sized(MAX_APPEND_BYTES)], 'none')).revision).to.equal(0);
      expect((await subject.log.append(stream, [sized(half), sized(half)], 0)).revision).to.equal(2);
    });

    it('throws EventTooLargeError and writes nothing above the event limit, and writes at the limit', async () => {
      const stream = newStream();
      expect(await errorOf(subject.log.append(stream, newEvents(MAX_APPEND_EVENTS + 1), 'any'))).to.be.instanceOf(
        EventTooLargeError,
      );
      expect(await gather(subject.log.readStream(stream))).to.have.length(0);
      const written = await subject.log.append(stream, newEvents(MAX_APPEND_EVENTS), 'none');
      expect(written.revision).to.equal(MAX_APPEND_EVENTS - 1);
    });

    it('rejects data that is not JSON, without writing it or affecting other appends', async () => {
      const stream = newStream();
      const cycle: Record<string, unknown> = {};
      cycle.itself = cycle;
      const beside = subject.log.append(stream, [newEvent(0)], 'none');
      const deep = (levels: number) => {
        let value: Record<string, unknown> = {};
        for (let level = 0; level < levels; level++) value = { value };
        return value;
      };
      const values = [1n, cycle, undefined, new Date(0), new Map(), () => 1, Symbol('s'), Number.NaN, 1 / 0, deep(300)];
      for (const value of values) {
        for (const odd of [{ data: { value } }, { meta: { list: [1, value] } }]) {
          const error = await errorOf(subject.log.append(stream, [newEvent(1, odd)], 'any'));
          expect(error, String(typeof value)).to.be.instanceOf(Error);
        }
      }
      for (const data of [null, undefined, [], 'text', 1]) {
        const error = await errorOf(subject.log.append(stream, [newEvent(1, { data: data as never })], 'any'));
        expect(error).to.be.instanceOf(Error).and.not.instanceOf(LogUnavailableError);
      }
      await beside;
      expect(await errorOf(subject.log.append(stream, [], 'any'))).to.be.instanceOf(Error);
      expect(await gather(subject.log.readStream(stream))).to.have.length(1);
    });

    it('rejects an invalid name, id or expectation before writing anything', async () => {
      const stream = newStream();
      const before = await subject.log.head();
      const twice = newEvent();
      const refused: [string, NewEvent[], 'any' | 'none' | number][] = [
        ['', [newEvent()], 'any'],
        ['$reserved', [newEvent()], 'any'],
        [`${stream}\ud800`, [newEvent()], 'any'],
        [`${stream}\0`, [newEvent()], 'any'],
        [stream, [newEvent(0, { type: '' })], 'any'],
        [stream, [newEvent(0, { type: '$reserved' })], 'any'],
        [stream, [newEvent(0, { type: 'Half\udc00' })], 'any'],
        [stream, [newEvent(0, { type: 'Nul\0' })], 'any'],
        [stream, [newEvent(0, { id: 'no uuid' })], 'any'],
        [stream, [twice, twice], 'any'],
        [stream, [twice, { ...twice, id: twice.id.toUpperCase() }], 'any'],
        [stream, [newEvent()], -1],
        [stream, [newEvent()], 0.5],
        [stream, [newEvent()], Number.NaN],
      ];
      for (const [name, events, expected] of refused) {
        const error = await errorOf(subject.log.append(name, events, expected));
        expect(error, `${name} ${expected}`).to.be.instanceOf(Error).and.not.instanceOf(ConflictError);
      }
      expect(await readAfter(subject.log, before, [stream, `${stream}\0`])).to.deep.equal([]);
    });

    it('returns an upper-case id in lower case, and gives a repeated append the same result', async () => {
      const stream = newStream();
      const event = newEvent();
      const shouted = { ...event, id: event.id.toUpperCase() };
      const first = await subject.log.append(stream, [shouted], 'none');
      expect(await subject.log.append(stream, [shouted], 'none')).to.deep.equal(first);
      expect(await subject.log.append(stream, [event], 'none')).to.deep.equal(first);
      expect(idsOf(await gather(subject.log.readStream(stream)))).to.deep.equal([event.id]);
    });

    it(`lets one of ${RACERS} concurrent writers create a stream, and the others get ConflictError`, async () => {
      const stream = newStream();
      const events = newEvents(RACERS);
      const outcomes = await Promise.allSettled(
        events.map((event, n) => (n % 2 ? subject.log : subject.other).append(stream, [event], 'none')),
      );
      const winners = events.filter((_, n) => outcomes[n]?.status === 'fulfilled');
      const losses = outcomes.filter((outcome) => outcome.status === 'rejected');
      expect(winners).to.have.length(1);
      for (const loss of losses) expect(loss.reason).to.be.instanceOf(ConflictError);
      expect(idsOf(await gather(subject.log.readStream(stream)))).to.deep.equal(idsOf(winners));
    });

    it(`writes ${RETRIERS} events without gaps if ${RETRIERS} concurrent writers retry on exact revisions`, async () => {
      const stream = newStream();
      const race = async (n: number): Promise<void> => {
        const log = n % 2 ? subject.log : subject.other;
        const event = newEvent(n);
        for (;;) {
          const [last] = await gather(log.readStream(stream, { direction: 'backwards', limit: 1 }));
          try {
            await log.append(stream, [event], last ? last.revision : 'none');
            return;
          } catch (error) {
            if (!(error instanceof ConflictError)) throw error;
          }
        }
      };
      await Promise.all(Array.from({ length: RETRIERS }, (_, n) => race(n)));
      const read = await gather(subject.log.readStream(stream));
      expect(revisionsOf(read)).to.deep.equal(Array.from({ length: RETRIERS }, (_, n) => n));
      expect(new Set(read.map(({ data }) => data.n)).size).to.equal(RETRIERS);
    });
  });
}
