/** The step that seals events. */
import { expect } from 'chai';
import { opened, sealedAddress, sealedParts } from '../../../shared/event-store/open.ts';
import { personOfAddress, sealed } from '../../../shared/event-store/seal.ts';
import type { EventDefinition } from '../../../shared/events/define.ts';
import type { Metadata } from '../../../shared/events/metadata.ts';
import { joined } from '../../support/joined.ts';
import { memoryKeys } from '../../support/memory-keys.ts';
import { testOrigin } from '../../support/world.ts';

const meta: Metadata = { ...testOrigin, version: 2, number: 1, at: Date.UTC(2026, 1, 3) };
const id = '00000000-0000-4000-8000-000000000001';
const withSecrets: EventDefinition = {
  ...joined,
  secrets: { fields: ['config', 'nested.config'], owner: ({ id: owner }) => `config:${owner}` },
};

describe('sealed events', () => {
  it('have no personal field and no address in clear; a field has a key besides that of its person', async () => {
    const keys = memoryKeys();
    const event = await sealed(keys, joined, { id, data: { id: 3, email: 'ada@example.org', city: 'Paris' }, meta });
    expect(JSON.stringify(event)).not.to.contain('ada@').and.not.to.contain('192.0.2.1');
    expect(event.data).to.deep.include({ id: 3, city: 'Paris' });
    expect(event.data.email).to.include({ sealed: 2, person: 'user:3' });
    expect(event.meta.ip).to.include({ sealed: 1, person: 'user:1' });
    expect([...keys.kept.keys()]).to.have.members(['user:1', 'user:3', `field:${id}/email`]);
  });

  it('need no key where there is nothing to seal', async () => {
    const keys = memoryKeys();
    const data = { id: 3, email: null };
    const event = await sealed(keys, withSecrets, { id, data, meta: { ...meta, ip: null } });
    expect(event).to.deep.equal({ id, type: 'Joined', data, meta: { ...meta, ip: null } });
    expect(keys.kept.size).to.equal(0);
  });

  it('show values from clients without their secrets, at any depth', async () => {
    const keys = memoryKeys();
    const config = { model: 'm', apiKey: 'the key' };
    const data = { id: 3, email: null, config, nested: { n: 1, config } };
    const event = await sealed(keys, withSecrets, { id, data, meta });
    expect(JSON.stringify(event)).not.to.contain('the key');
    expect(event.data.config).to.deep.include({ person: 'config:3', shown: { model: 'm', apiKey: { sealed: 0 } } });
    expect(event.data.nested).to.deep.include({ n: 1 });
    const parts = sealedParts(event, withSecrets);
    expect(opened(id, event.data, parts, (name) => keys.kept.get(name))).to.deep.equal(data);
  });

  it('have an address that opens with the key of the caller', async () => {
    const keys = memoryKeys();
    const event = await sealed(keys, joined, { id, data: { id: 3, email: null }, meta });
    expect(opened(id, event.meta, sealedAddress(event), (name) => keys.kept.get(name)).ip).to.equal('192.0.2.1');
  });

  it('have one box for an address in all events of a person, so that metadata can be stored once', async () => {
    const keys = memoryKeys();
    const addressOf = async (own: Partial<Metadata>, eventId: string) =>
      (await sealed(keys, joined, { id: eventId, data: { id: 3, email: null }, meta: { ...meta, ...own } })).meta.ip;
    const other = '00000000-0000-4000-8000-000000000002';
    const first = await addressOf({}, id);
    expect(await addressOf({}, other)).to.deep.equal(first);
    expect(await addressOf({ ip: '192.0.2.2' }, id)).not.to.deep.equal(first);
    expect(await addressOf({ actor: { type: 'user', id: 2, name: 'bob' } }, id)).not.to.deep.equal(first);
  });

  it('keep the address of a caller who is not signed in with the person concerned, else for a month', () => {
    const data: Readonly<Record<string, unknown>> = { id: 3, email: null };
    const anonymous = { ...meta, actor: { type: 'anonymous', id: 0, name: 'anonymous' } } as const;
    expect(personOfAddress(joined, { data, meta })).to.equal('user:1');
    expect(personOfAddress(joined, { data, meta: anonymous })).to.equal('user:3');
    expect(personOfAddress({}, { data, meta: anonymous })).to.equal('anonymous:2026-02');
  });
});
