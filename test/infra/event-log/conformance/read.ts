/** Conformance: reading streams and the log, both ways, and the head. */
import { expect } from 'chai';
import { UnknownPositionError } from '../../../../shared/errors.ts';
import { BEGINNING, type LoggedEvent, type ReadStreamOptions } from '../../../../shared/ports/event-log.ts';
import {
  errorOf,
  gather,
  idsOf,
  inStreams,
  newEvent,
  newEvents,
  newStream,
  readAfter,
  revisionsOf,
  type Subject,
} from './subject.ts';

const sizeInJson = ({ data, meta }: LoggedEvent): number =>
  Buffer.byteLength(JSON.stringify(data)) + Buffer.byteLength(JSON.stringify(meta));

export function readConformance(subject: Subject): void {
  describe('readStream', () => {
    it('returns nothing for a stream without events, in either direction', async () => {
      for (const options of [{}, { direction: 'backwards' }, { from: 3 }, { limit: 5 }] satisfies ReadStreamOptions[]) {
        expect(await gather(subject.log.readStream(newStream(), options))).to.deep.equal([]);
      }
    });

    it('reads in both directions, from a revision and with a limit', async () => {
      const stream = newStream();
      await subject.log.append(stream, newEvents(10), 'none');
      const read = async (options: ReadStreamOptions) =>
        revisionsOf(await gather(subject.log.readStream(stream, options)));
      expect(await read({})).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
      expect(await read({ from: 7 })).to.deep.equal([7, 8, 9]);
      expect(await read({ from: 10 })).to.deep.equal([]);
      expect(await read({ limit: 3 })).to.deep.equal([0, 1, 2]);
      expect(await read({ from: 4, limit: 2 })).to.deep.equal([4, 5]);
      expect(await read({ from: 8, limit: 100 })).to.deep.equal([8, 9]);
      expect(await read({ direction: 'backwards' })).to.deep.equal([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
      expect(await read({ direction: 'backwards', from: 2 })).to.deep.equal([2, 1, 0]);
      expect(await read({ direction: 'backwards', from: 0 })).to.deep.equal([0]);
      expect(await read({ direction: 'backwards', limit: 1 })).to.deep.equal([9]);
      expect(await read({ direction: 'backwards', from: 5, limit: 2 })).to.deep.equal([5, 4]);
      expect(await read({ limit: 0 })).to.deep.equal([]);
    });

    it('reads a stream completely if it exceeds one batch', async () => {
      const stream = newStream();
      const events = newEvents(2_100);
      for (let from = 0; from < events.length; from += 700) {
        await subject.log.append(stream, events.slice(from, from + 700), 'any');
      }
      expect(idsOf(await gather(subject.log.readStream(stream)))).to.deep.equal(idsOf(events));
      const back = await gather(subject.log.readStream(stream, { direction: 'backwards', from: 2_050 }));
      expect(idsOf(back)).to.deep.equal(idsOf(events.slice(0, 2_051)).reverse());
      const limited = await gather(subject.log.readStream(stream, { from: 100, limit: 1_500 }));
      expect(idsOf(limited)).to.deep.equal(idsOf(events.slice(100, 1_600)));
    });
  });

  describe('readAll', () => {
    it('excludes the cursor in both directions, even in the middle of a batch', async () => {
      const stream = newStream();
      const start = await subject.log.head();
      await subject.log.append(stream, newEvents(6), 'none');
      const all = await readAfter(subject.log, start, [stream]);
      expect(revisionsOf(all)).to.deep.equal([0, 1, 2, 3, 4, 5]);
      for (const [index, { position }] of all.entries()) {
        expect(await readAfter(subject.log, position, [stream])).to.deep.equal(all.slice(index + 1));
        const before: LoggedEvent[] = [];
        for await (const batch of subject.log.readAll({ direction: 'backwards', from: position })) {
          before.push(...batch.filter(inStreams(stream)));
          if ((batch.at(-1)?.position ?? 0) <= start) break;
        }
        expect(before.reverse()).to.deep.equal(all.slice(0, index));
      }
    });

    it('respects a limit', async () => {
      const stream = newStream();
      const start = await subject.log.head();
      await subject.log.append(stream, newEvents(1_000), 'none');
      const all = await gather(subject.log.readAll({ from: start }));
      expect(all.length).to.be.at.least(1_000);
      for (const limit of [0, 1, 2, 499, 500, 501, 777]) {
        expect(await gather(subject.log.readAll({ from: start, limit }))).to.deep.equal(all.slice(0, limit));
      }
      const from = all[700]?.position ?? 0;
      expect(await gather(subject.log.readAll({ direction: 'backwards', from, limit: 600 }))).to.deep.equal(
        all.slice(100, 700).reverse(),
      );
    });

    it('returns batches of bounded bytes in both directions, whatever the event size', async () => {
      const maxBytes = 50_000;
      const stream = newStream();
      const start = await subject.log.head();
      const sizes = [10, 10, 200_000, 10, 30_000, 30_000, 60_000, ...Array.from({ length: 300 }, () => 400), 90_000, 5];
      const events = sizes.map((size, n) => newEvent(n, { data: { n, text: 'ä'.repeat(size / 2) } }));
      for (let n = 0; n < events.length; n += 50) await subject.log.append(stream, events.slice(n, n + 50), 'any');
      const all = await gather(subject.log.readAll({ from: start }));
      const batches: (readonly LoggedEvent[])[] = [];
      for await (const batch of subject.log.readAll({ from: start, maxBytes })) batches.push(batch);
      expect(batches.flat()).to.deep.equal(all);
      const back: LoggedEvent[] = [];
      for await (const batch of subject.log.readAll({ direction: 'backwards', maxBytes })) {
        batches.push(batch);
        back.push(...batch.filter(({ position }) => position > start));
        if ((batch.at(-1)?.position ?? 0) <= start) break;
      }
      expect(back.reverse()).to.deep.equal(all);
      for (const batch of batches) {
        const bytes = batch.reduce((sum, event) => sum + sizeInJson(event), 0);
        if (batch.length > 1) expect(bytes).to.be.at.most(maxBytes);
      }
      // Small ones come together: 300 events of 400 bytes are not 300 batches.
      expect(Math.max(...batches.map((batch) => batch.length))).to.be.greaterThan(20);
      for (const { position } of all.slice(1, 4)) {
        const rest = all.filter((event) => event.position > position);
        expect(await gather(subject.log.readAll({ from: position, maxBytes }))).to.deep.equal(rest);
        expect(await gather(subject.log.readAll({ from: position, maxBytes, limit: 3 }))).to.deep.equal(
          rest.slice(0, 3),
        );
      }
    });

    it('returns nothing backwards from the beginning or forwards from the head', async () => {
      expect(await gather(subject.log.readAll({ direction: 'backwards', from: BEGINNING }))).to.deep.equal([]);
      const stream = newStream();
      const { position } = await subject.log.append(stream, newEvents(1), 'any');
      expect(await readAfter(subject.log, position, [stream])).to.deep.equal([]);
    });

    it('throws UnknownPositionError for a position that is not in the log', async () => {
      const { position } = await subject.log.append(newStream(), newEvents(1), 'none');
      for (const from of [position + 1_000_000_000, Number.MAX_SAFE_INTEGER]) {
        for (const direction of ['forwards', 'backwards'] as const) {
          const error = await errorOf(gather(subject.log.readAll({ from, direction, limit: 1 })));
          expect(error).to.be.instanceOf(UnknownPositionError).and.to.have.property('position', from);
        }
        expect(await errorOf(gather(subject.log.readAll({ from, limit: 0 })))).to.be.instanceOf(UnknownPositionError);
      }
      for (const from of [BEGINNING, position, await subject.log.head()]) {
        expect(await gather(subject.log.readAll({ from, limit: 0 }))).to.deep.equal([]);
        await gather(subject.log.readAll({ from, limit: 1 }));
      }
    });

    it('lets a reader stop in the middle', async () => {
      await subject.log.append(newStream(), newEvents(1_000), 'none');
      for await (const batch of subject.log.readAll()) {
        expect(batch).to.not.have.length(0);
        break;
      }
      expect((await subject.log.append(newStream(), newEvents(1), 'none')).revision).to.equal(0);
    });
  });

  describe('head', () => {
    it('is the position of the last event', async () => {
      const stream = newStream();
      const before = await subject.log.head();
      const { position } = await subject.log.append(stream, newEvents(5), 'none');
      const head = await subject.log.head();
      expect(position).to.be.greaterThan(before);
      expect(head).to.be.at.least(position);
      const behind = (await gather(subject.log.readAll({ from: position }))).at(-1);
      expect(head).to.equal(behind?.position ?? position);
    });
  });
}
