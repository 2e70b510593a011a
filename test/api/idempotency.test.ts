/** What is stored of a request with an `Idempotency-Key`: for whom, and under which keys. */
import { createHash, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { RequestContext } from '../../api/http/context.ts';
import { runOnce } from '../../api/http/idempotency.ts';
import type { RouteResponse } from '../../api/http/route.ts';
import { createIdempotencyStore } from '../../infra/stores/idempotency.ts';
import { AppError } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import type { IdempotencyStore } from '../../shared/ports/idempotency.ts';
import { fixture } from '../support/fixture.ts';
import { embeddedDatabase } from '../support/world.ts';

const body = { username: 'ada', password: 'correct horse battery' };
const url = '/api/auth/users';

interface Caller {
  readonly workspace: number;
  readonly id: number;
  readonly kind?: Identity['kind'];
  readonly agentName?: string;
}

describe('Idempotency-Key', function () {
  this.timeout(60_000);
  let store: IdempotencyStore;
  let keys = 0;
  const newKey = () => `key-${++keys}`;

  const place = fixture(embeddedDatabase);
  before(async () => {
    store = createIdempotencyStore(place.database.pool, 'test');
  });

  const contextOf = (caller: Caller | undefined, ip = '192.0.2.1') =>
    ({
      identity: caller as Identity | undefined,
      ip,
      req: { method: 'POST', originalUrl: url },
    }) as unknown as RequestContext;
  /** Asks, and tells whether it was done or the stored answer was given. */
  async function ask(key: string, context: RequestContext, answer: unknown = { done: true }, sent: unknown = body) {
    let ran = false;
    const given: RouteResponse = await runOnce(store, key, context, sent, async () => {
      ran = true;
      return { status: 201, body: answer };
    });
    return { ran, body: given.body, replayed: given.headers?.['Idempotency-Replayed'] === 'true' };
  }
  const rowOf = async (scope: string, key: string) => {
    const hash = createHash('sha256').update(`${scope}\n${key}`).digest();
    const { rows } = await place.database.pool.query(
      'SELECT request_hash, state, box, locked_until FROM service.idempotency WHERE scope = $1 AND key_hash = $2',
      [scope, hash],
    );
    return rows[0] as { request_hash: Buffer; state: string; box: Buffer; locked_until: number } | undefined;
  };
  const refusalOf = async (asked: Promise<unknown>): Promise<AppError> => {
    const error = await asked.then(
      () => expect.fail('it was answered'),
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(AppError);
    return error as AppError;
  };

  it('is scoped to the caller: another caller, workspace or address makes a different request', async () => {
    const key = newKey();
    const callers: [RequestContext, string][] = [
      [contextOf({ workspace: 1, id: 7 }), 'the first'],
      [contextOf({ workspace: 1, id: 8 }), 'another user'],
      [contextOf({ workspace: 2, id: 7 }), 'another workspace'],
      [contextOf({ workspace: 1, id: -7 }), 'an agent'],
      [contextOf({ workspace: 17, id: 7 }), 'a workspace that begins alike'],
      [contextOf(undefined, '192.0.2.1'), 'anonymous'],
      [contextOf(undefined, '192.0.2.2'), 'anonymous elsewhere'],
    ];
    for (const [context, who] of callers) expect((await ask(key, context, { for: who })).ran, who).to.equal(true);
    for (const [context, who] of callers) {
      expect(await ask(key, context), who).to.deep.equal({ ran: false, body: { for: who }, replayed: true });
    }
    // The body of another caller does not matter either.
    const other = contextOf({ workspace: 3, id: 7 });
    expect((await ask(key, other, {}, { other: 'body' })).ran).to.equal(true);
  });

  it('is scoped to the agent: the same request on behalf of another agent is rejected', async () => {
    const key = newKey();
    const asking = (agentName?: string) =>
      contextOf({ workspace: 1, id: 7, kind: 'user', ...(agentName && { agentName }) });
    expect((await ask(key, asking('scout'), { for: 'scout' })).ran).to.equal(true);
    for (const other of [asking('ada'), asking()]) {
      const refusal = await refusalOf(ask(key, other));
      expect([refusal.status, refusal.extras.code]).to.deep.equal([409, 'IDEMPOTENCY_KEY_REUSED']);
    }
    expect(await ask(key, asking('scout'))).to.deep.equal({ ran: false, body: { for: 'scout' }, replayed: true });
    const nobodys = newKey();
    await ask(nobodys, asking(), { for: 'nobody' });
    expect((await refusalOf(ask(nobodys, asking('scout')))).extras.code).to.equal('IDEMPOTENCY_KEY_REUSED');
    // The key of an agent speaks for that agent, whatever its name is by now.
    const own = (agentName: string) => contextOf({ workspace: 1, id: -7, kind: 'agent-key', agentName });
    const renamed = newKey();
    await ask(renamed, own('scout'), { for: 'its key' });
    expect(await ask(renamed, own('finch'))).to.deep.include({ ran: false, body: { for: 'its key' } });
  });

  it('stores nothing that a guessed body or the caller’s key alone can decrypt', async () => {
    const key = newKey();
    await ask(key, contextOf({ workspace: 1, id: 7 }), { api_key: 'mca_secret' });
    const row = await rowOf('1:7', key);
    const guessed = createHash('sha256')
      .update(`POST ${url}\n${JSON.stringify(body)}`)
      .digest();
    expect(row?.request_hash.equals(guessed), 'a plain hash of the body').to.equal(false);
    expect(row?.box.includes('mca_secret')).to.equal(false);
    // With another secret, as for a caller who knows the caller's key and not the deployment's.
    const secret = await store.secret();
    const stranger: IdempotencyStore = { ...store, secret: async () => randomBytes(32) };
    const refusal = await refusalOf(
      runOnce(stranger, key, contextOf({ workspace: 1, id: 7 }), body, () => expect.fail('it ran again')),
    );
    expect(refusal.extras.code).to.equal('IDEMPOTENCY_KEY_REUSED');
    expect((await store.secret()).equals(secret)).to.equal(true);
  });

  it('a request with an unreadable record is not repeated, and does not block other requests for good', async () => {
    const me = contextOf({ workspace: 1, id: 7 });
    for (const state of ['done', 'running'] as const) {
      const key = newKey();
      await ask(key, me);
      const spoil =
        'UPDATE service.idempotency SET state = $1, locked_until = 0, box = $2 WHERE scope = $3 AND key_hash = $4';
      const keyHash = createHash('sha256').update(`1:7\n${key}`).digest();
      await place.database.pool.query(spoil, [state, randomBytes(60), '1:7', keyHash]);
      const refusal = await refusalOf(ask(key, me));
      expect([refusal.status, refusal.extras.code], state).to.deep.equal([409, 'IDEMPOTENCY_ANSWER_LOST']);
      // It is retried at once: no request holds it.
      expect((await rowOf('1:7', key))?.locked_until, state).to.equal(0);
    }
  });
});
