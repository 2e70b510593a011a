/** Metadata as columns: nothing is stored twice, and reading gives it back byte for byte. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { createLogger } from '../../../infra/logging.ts';
import { openPostgresLog } from '../../../infra/postgres/event-log.ts';
import { Origins, packed, type StoredEvent } from '../../../infra/postgres/metadata.ts';
import type { LoggedEvent, NewEvent } from '../../../shared/ports/event-log.ts';
import { fixture } from '../../support/fixture.ts';
import { embeddedDatabase } from '../../support/world.ts';

type Meta = NewEvent['meta'];

const [request, other] = ['2b9f9a0e-5a3c-4a4e-9a31-0f5a1c1d2e3f', '7c1f0d7a-1111-4222-8333-444455556666'];
const whole = (own: Meta = {}): Meta => {
  const { rest, agent, via, traceparent, ...given } = own;
  return {
    version: 1,
    number: 42,
    at: 1_750_000_000_123,
    ...(rest !== undefined && { rest }),
    tenant: 1,
    workspace: 2,
    actor: { type: 'user', id: 3, name: 'ada' },
    ...(agent !== undefined && { agent }),
    ...(via !== undefined && { via }),
    ip: { sealed: 1, person: 'user:3', box: 'AAAA' },
    userAgent: 'a "quoted"\nagent',
    requestId: request,
    correlationId: request,
    causationId: request,
    ...given,
    ...(traceparent !== undefined && { traceparent }),
  };
};

/** Of all kinds of cause, with and without each optional part. */
const PACKED: readonly Meta[] = [
  whole(),
  whole({ rest: 2, agent: 7, via: 'mcp', traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }),
  whole({ ip: null, userAgent: null, requestId: null, causationId: null }),
  whole({ requestId: null, causationId: other }),
  whole({ requestId: request, correlationId: 'of a client', causationId: 'of a client' }),
  whole({ requestId: null, correlationId: request.toUpperCase(), causationId: null }),
];

/** As another program may have written it. */
const AS_IT_IS: readonly Meta[] = [
  {},
  { n: 1 },
  { ...whole(), extra: true },
  Object.fromEntries(Object.entries(whole()).reverse()),
  { ...whole(), number: 1.5 },
  { ...whole(), at: null },
  { ...whole(), number: 2 ** 60 },
];

const eventWith = (meta: Meta): NewEvent => ({ id: randomUUID(), type: 'Kept', data: { n: 1 }, meta });

describe('stored metadata', () => {
  it('has the ids of a request once, and what a caller’s events have in common apart', () => {
    const { origin, shared, ...own } = packed(whole());
    expect(own).to.deep.equal({ number: 42, at: 1_750_000_000_123, cause: request, meta: '{}' });
    expect(packed(whole({ number: 43, rest: 1, requestId: null, causationId: other }))).to.deep.include({
      origin,
      shared,
      meta: JSON.stringify({ rest: 1, requestId: null, causationId: other }),
    });
    expect(packed({ ...whole(), workspace: 3 }).origin).not.to.equal(origin);
    for (const meta of PACKED) expect(packed(meta).origin).to.be.a('string');
    for (const meta of AS_IT_IS) expect(packed(meta), JSON.stringify(meta)).to.include({ origin: null });
  });

  it('lacks the origin if it was removed, so the event no longer matches its leaf', async () => {
    const { origin, number, at, cause, meta } = packed(whole());
    const stored = { ...eventWith(JSON.parse(meta ?? '')), position: 1, stream: 's', revision: 0 };
    const query = async () => ({ rows: [] });
    const [event] = await new Origins(query).restore([{ ...stored, origin, number, at, cause } as StoredEvent]);
    expect(event?.meta).to.deep.include({ number, at, requestId: request }).and.not.to.have.property('actor');
  });

  describe('in the log', () => {
    const place = fixture(embeddedDatabase);
    const log = createLogger('silent');
    const texts = (events: readonly Pick<LoggedEvent, 'meta'>[]) => events.map(({ meta }) => JSON.stringify(meta));

    it('is read as it was written, also by another process', async () => {
      const { database } = place;
      const metas = [...PACKED, ...AS_IT_IS];
      const mine = openPostgresLog({ database, log });
      // By every kind of append: of a known stream, of a new one, and repeated in a transaction.
      await mine.append('kept-1', metas.map(eventWith), 'none');
      await mine.append('kept-1', metas.map(eventWith), 'any');
      const theirs = openPostgresLog({ database, log });
      await theirs.append('kept-1', metas.map(eventWith), 'any');
      const found: LoggedEvent[] = [];
      for await (const page of theirs.readStream('kept-1')) found.push(...page);
      expect(texts(found)).to.deep.equal([...metas, ...metas, ...metas].map((meta) => JSON.stringify(meta)));
      const { rows } = await database.pool.query('SELECT id FROM log.origins');
      expect(rows).to.have.length(new Set(PACKED.map((meta) => packed(meta).origin)).size);
      await Promise.all([mine.close(), theirs.close()]);
    });
  });
});
