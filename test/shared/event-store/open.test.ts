/** The step that opens events. */
import { expect } from 'chai';
import { ERASED_NAME, opened, sealedFields, sealedParts, withKeys } from '../../../shared/event-store/open.ts';
import { isSealed, sealAlike } from '../../../shared/event-store/sealed-values.ts';
import type { EventDefinition } from '../../../shared/events/define.ts';
import type { NewEvent } from '../../../shared/ports/event-log.ts';
import { joined } from '../../support/joined.ts';
import { memoryKeys } from '../../support/memory-keys.ts';

const id = '00000000-0000-4000-8000-000000000001';
const key = Buffer.alloc(32, 9);
const eventWith = (data: Record<string, unknown>, version = 2): NewEvent => ({
  id,
  type: 'Joined',
  data,
  meta: { version },
});
const box = (path: string, value: unknown, eventId = id) => sealAlike(key, 'user:3', `${eventId}/${path}`, value);

/** Opens all sealed parts with one key; without it, the person was erased. */
const open = (event: NewEvent, definition: EventDefinition, known: Buffer | undefined = key) =>
  opened(id, event.data, sealedParts(event, definition), () => known);

describe('opened events', () => {
  it('have readable personal fields; null once the person was erased', () => {
    const event = eventWith({ id: 3, email: box('email', 'ada@example.org') });
    expect(open(event, joined)).to.deep.equal({ id: 3, email: 'ada@example.org' });
    expect(opened(id, event.data, sealedParts(event, joined), () => undefined)).to.deep.equal({ id: 3, email: null });
    expect(isSealed(event.data.email), 'unchanged').to.equal(true);
  });

  it('are the same object when nothing is sealed, even if data from a client looks sealed', () => {
    const event = eventWith({ id: 3, email: null, config: { sealed: 1, person: 'user:3', box: 'AAAA' } });
    expect(sealedParts(event, joined)).to.deep.equal([]);
    expect(open(event, joined)).to.equal(event.data);
  });

  it('do not open a value from another event', () => {
    const event = eventWith({ id: 3, email: box('email', 'ada@example.org', 'another') });
    expect(() => open(event, joined)).to.throw();
  });

  it('have display names of older versions, at any depth, or a text in place of an erased one', () => {
    const named: EventDefinition = { ...joined, formerNames: { before: 2, fields: () => ['task.author', 'city'] } };
    const data = { task: { author: box('task.author', 'Ann Lee'), n: 1 }, city: 'Paris' };
    expect(open(eventWith(data, 1), named)).to.deep.equal({ task: { author: 'Ann Lee', n: 1 }, city: 'Paris' });
    const parts = sealedParts(eventWith(data, 1), named);
    expect(opened(id, data, parts, () => undefined)).to.deep.equal({
      task: { author: ERASED_NAME, n: 1 },
      city: 'Paris',
    });
    expect(sealedParts(eventWith(data, 2), named), 'a newer version').to.deep.equal([]);
  });

  it('have fields under the names of their version', () => {
    const rule: EventDefinition = {
      ...joined,
      type: 'AlertRuleCreated',
      personal: { fields: ['action_config'], person: () => 'user:3' },
    };
    const event = { ...eventWith({ actionConfig: box('actionConfig', 1) }, 1), type: rule.type };
    expect(open(event, rule)).to.deep.equal({ actionConfig: 1 });
    expect(sealedFields({ ...event, meta: { version: 2 } }, rule)).to.deep.equal([]);
  });

  it('wait for keys only if they are not in memory', async () => {
    const { kept, ...keys } = memoryKeys(new Map([['user:3', key]]));
    const event = eventWith({ id: 3, email: box('email', 'ada@example.org') });
    const parts = sealedParts(event, joined);
    const found = (keyOf: (name: string) => Buffer | undefined) => keyOf('user:3');
    expect(withKeys(keys, id, parts, found)).to.equal(kept.get('user:3'));
    const late = withKeys({ find: async (name) => kept.get(name) }, id, parts, found);
    expect(late).to.be.instanceOf(Promise);
    expect(await late).to.equal(key);
  });
});
