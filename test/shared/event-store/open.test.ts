/** The step that opens events. */
import { expect } from 'chai';
import { opened, sealedParts, withKeys } from '../../../shared/event-store/open.ts';
import { isSealed, sealValue } from '../../../shared/event-store/sealed-values.ts';
import type { EventDefinition } from '../../../shared/events/define.ts';
import type { NewEvent } from '../../../shared/ports/event-log.ts';
import { joined } from '../../support/joined.ts';
import { memoryKeys } from '../../support/memory-keys.ts';

const id = '00000000-0000-4000-8000-000000000001';
const key = Buffer.alloc(32, 9);
const eventWith = (data: Record<string, unknown>): NewEvent => ({
  id,
  type: 'Joined',
  data,
  meta: { version: 2 },
});
const box = (path: string, value: unknown, eventId = id) =>
  sealValue({ findOrCreate: async () => key }, 'user:3', `${eventId}/${path}`, value);

/** Opens all sealed parts with one key; without it, the person was erased. */
const open = (event: NewEvent, definition: EventDefinition, known: Buffer | undefined = key) =>
  opened(id, event.data, sealedParts(event, definition), () => known);

describe('opened events', () => {
  it('have readable personal fields; null once the person was erased', async () => {
    const event = eventWith({ id: 3, email: await box('email', 'ada@example.org') });
    expect(open(event, joined)).to.deep.equal({ id: 3, email: 'ada@example.org' });
    expect(opened(id, event.data, sealedParts(event, joined), () => undefined)).to.deep.equal({ id: 3, email: null });
    expect(isSealed(event.data.email), 'unchanged').to.equal(true);
  });

  it('are the same object when nothing is sealed, even if data from a client looks sealed', () => {
    const event = eventWith({ id: 3, email: null, config: { sealed: 1, person: 'user:3', box: 'AAAA' } });
    expect(sealedParts(event, joined)).to.deep.equal([]);
    expect(open(event, joined)).to.equal(event.data);
  });

  it('do not open a value from another event', async () => {
    const event = eventWith({ id: 3, email: await box('email', 'ada@example.org', 'another') });
    expect(() => open(event, joined)).to.throw();
  });

  it('wait for keys only if they are not in memory', async () => {
    const { kept, ...keys } = memoryKeys(new Map([['user:3', key]]));
    const event = eventWith({ id: 3, email: await box('email', 'ada@example.org') });
    const parts = sealedParts(event, joined);
    const found = (keyOf: (name: string) => Buffer | undefined) => keyOf('user:3');
    expect(withKeys(keys, id, parts, found)).to.equal(kept.get('user:3'));
    const late = withKeys({ find: async (name) => kept.get(name) }, id, parts, found);
    expect(late).to.be.instanceOf(Promise);
    expect(await late).to.equal(key);
  });
});
