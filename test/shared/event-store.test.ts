/** The event store: its steps together. Each has a test of its own in `event-store/`. */
import { expect } from 'chai';
import { EventUnreadableError } from '../../shared/errors.ts';
import { isSealed } from '../../shared/event-store/sealed-values.ts';
import { createEventStore } from '../../shared/event-store.ts';
import { type Upcasters, upcast } from '../../shared/events/upcasters.ts';
import type { EventLog, LoggedEvent, NewEvent } from '../../shared/ports/event-log.ts';
import { joined } from '../support/joined.ts';
import { memoryKeys } from '../support/memory-keys.ts';
import { testOrigin } from '../support/world.ts';

function open(upcasters?: Upcasters) {
  const { kept: keys, ...personKeys } = memoryKeys();
  let number = 0;
  const store = createEventStore({
    log: undefined as unknown as EventLog,
    catalogue: new Map([[joined.type, joined]]),
    counters: {
      take: (_name, count = 1) => {
        number += count;
        return number - count + 1;
      },
    },
    keys: { ...personKeys, find: async (person) => keys.get(person) },
    now: () => 1_700_000_000_000,
    ...(upcasters && { upcasters }),
  });
  return { store, keys };
}
/** As read from a store: nothing is shared with what was written. */
const logged = (event: NewEvent): LoggedEvent => ({ ...structuredClone(event), stream: 's', revision: 0, position: 1 });
const first = async (store: ReturnType<typeof open>['store'], data: object) =>
  (await store.prepare([{ type: 'Joined', data: data as never }], testOrigin))[0] as NewEvent;
const messageOf = async (work: () => unknown): Promise<string> => {
  try {
    await work();
    return 'nothing was thrown';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('event store', () => {
  it('an unavailable key is not treated as an error of the event', async () => {
    const { store, keys } = open();
    const event = logged(await first(store, { id: 3, email: 'ada@example.org' }));
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const find = keys.get.bind(keys);
    keys.get = () => {
      throw away;
    };
    const failure = await Promise.resolve(store.decode(event)).catch((error: unknown) => error);
    expect(failure).to.equal(away);
    keys.get = find;
    expect((await store.decode(event)).data).to.include({ email: 'ada@example.org' });
  });

  it('encrypts personal fields and the IP address, and decrypts them', async () => {
    const { store } = open();
    const event = await first(store, { id: 3, email: 'ada@example.org' });
    expect(JSON.stringify(event)).not.to.contain('ada@').and.not.to.contain('192.0.2.1');
    expect(isSealed(event.data.email)).to.equal(true);
    expect(event.data.id).to.equal(3);
    const read = await store.decode(logged(event));
    expect(read.data).to.deep.equal({ id: 3, email: 'ada@example.org' });
    expect(read.meta.ip).to.equal('192.0.2.1');
    expect(read.meta).to.include({ version: 2, number: 1, at: 1_700_000_000_000, tenant: 1, workspace: 1 });
  });

  it('decrypts the IP address on access, including copies and JSON; an altered one is an error', async () => {
    const { store } = open();
    const event = logged(await first(store, { id: 3, email: null }));
    const { meta } = await store.decode(event);
    expect([{ ...meta }.ip, structuredClone(meta).ip]).to.deep.equal(['192.0.2.1', '192.0.2.1']);
    expect(JSON.parse(JSON.stringify((await store.decode(logged(event))).meta))).to.deep.equal(meta);
    const { ip } = event.meta as { ip: { box: string } };
    const altered = logged({ ...event, meta: { ...event.meta, ip: { ...ip, box: `A${ip.box.slice(1, -1)}A` } } });
    const read = await store.decode(altered);
    expect(read.meta.actor).to.deep.equal(meta.actor);
    expect(() => read.meta.ip).to.throw(EventUnreadableError, 'Joined at position 1 cannot be read');
  });

  it('returns the same to its own followers, who get the original objects, as to every reader', async () => {
    const { store, keys } = open();
    const event = await first(store, { id: 3, email: 'ada@example.org' });
    const asRead = await store.decode(logged(event));
    keys.clear();
    const handedOn = { ...event, stream: 's', revision: 0, position: 1 };
    expect(await store.decode(handedOn)).to.deep.equal(asRead);
    expect(store.decode(handedOn), 'decoded once').to.equal(store.decode(handedOn));
  });

  it('reads null if the key of the field was deleted, and the rest as before', async () => {
    const { store, keys } = open();
    const [one, two] = [
      await first(store, { id: 3, email: 'ada@one.org' }),
      await first(store, { id: 3, email: 'ada@two.org' }),
    ];
    keys.delete(`field:${one.id}/email`);
    expect((await store.decode(logged(one))).data).to.deep.equal({ id: 3, email: null });
    expect((await store.reveal(logged(one))).data.email).to.equal(null);
    expect((await store.decode(logged(one))).meta.ip).to.equal('192.0.2.1');
    expect((await store.decode(logged(two))).data.email).to.equal('ada@two.org');
    expect((await store.reveal(logged(two))).data.email).to.equal('ada@two.org');
  });

  it('rejects data that does not match its schema before anything is written', async () => {
    const { store } = open();
    expect(await messageOf(() => first(store, { id: 'three', email: null }))).to.match(/must be a number/);
    expect(await messageOf(() => store.prepare([{ type: 'Unheard', data: {} }], testOrigin))).to.match(
      /not in the catalogue/,
    );
  });

  it('names an event that it cannot read: unknown type, newer version or invalid data', async () => {
    const { store } = open();
    const event = logged(await first(store, { id: 3, email: null }));
    expect(await messageOf(() => store.decode({ ...event, type: 'Unheard' }))).to.match(
      /Unheard at position 1 .* unknown/,
    );
    expect(await messageOf(() => store.decode({ ...event, meta: { ...event.meta, version: 3 } }))).to.match(
      /version 3 is newer than 2/,
    );
    expect(await messageOf(() => store.decode({ ...event, data: { id: 'x' } }))).to.match(/position 1 cannot be read/);
  });

  it('decodes an event once, however often it is requested', async () => {
    const { store } = open();
    const event = logged(await first(store, { id: 3, email: null }));
    expect(await store.decode(event)).to.equal(await store.decode(event));
  });

  it('decodes an event of an old version as a current one, including its encrypted fields', async () => {
    const { store } = open({
      Joined: { 1: ({ town, ...data }) => ({ ...data, city: `${town} (${data.email})` }) },
    });
    const today = await first(store, { id: 3, email: 'ada@example.org' });
    const old = logged({ ...today, data: { ...today.data, town: 'Paris' }, meta: { ...today.meta, version: 1 } });
    const read = await store.decode(old);
    expect(read.data).to.deep.equal({ id: 3, email: 'ada@example.org', city: 'Paris (ada@example.org)' });
    expect(read.meta.version, 'as it was written').to.equal(1);
  });

  it('upcasts old versions step by step, and names a missing step', () => {
    const steps = {
      Joined: { 1: (data: object) => ({ ...data, email: null }), 2: (data: object) => ({ ...data, city: 'Paris' }) },
    };
    const by = { actor: { type: 'api', id: 0, name: 'api' } } as const;
    const at = (version: number) => ({ type: 'Joined', version });
    expect(upcast(at(3), { id: 1 }, by, 1, steps)).to.deep.equal({ id: 1, email: null, city: 'Paris' });
    expect(() => upcast(at(4), { id: 1 }, by, 3, steps)).to.throw(/Joined from version 3 to 4/);
  });
});
