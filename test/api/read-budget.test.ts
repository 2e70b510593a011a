/** What the reads of one caller may cost others. */
import { expect } from 'chai';
import type { RequestContext } from '../../api/http/context.ts';
import { createReadBudget, READ_BYTES } from '../../api/http/read-budget.ts';
import type { AppError } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import { nextTurn } from '../../shared/waiting.ts';

const context = { res: { destroyed: false } } as RequestContext;
const caller = (id: number, agentId: number | null = null) =>
  ({ kind: agentId === null ? 'user' : 'agent-key', id, agentId, tenant: 1, workspace: 1 }) as Identity;
const MB = 1_000_000;

describe('read budget', () => {
  let now = 0;
  let refused = 0;
  const create = (isOff = false) => {
    refused = 0;
    return createReadBudget({ now: () => now, isOff }, () => refused++);
  };
  /** Reads a response of this size. */
  const read = (budget: ReturnType<typeof create>, identity: Identity, bytes: number, path = '/api/tasks') =>
    budget
      .run(
        context,
        { identity, route: { path } },
        async () => bytes,
        (size) => size,
      )
      .then(
        () => 200,
        (error: AppError) => error,
      );

  it('refuses large reads of a caller that has used it up, with the time to wait', async () => {
    const budget = create();
    for (let n = 0; n < 5; n++) expect(await read(budget, caller(1), 25 * MB)).to.equal(200);
    const error = (await read(budget, caller(1), 10 * MB)) as AppError;
    expect(error.status).to.equal(429);
    expect(error.message).to.match(/^Your reads have returned more than 120 MB within a minute. Try again in 3 s/);
    expect(error.extras.headers).to.deep.equal({ 'Retry-After': '3' });
    expect(refused).to.equal(1);
    now += 3_000;
    expect(await read(budget, caller(1), 10 * MB), 'once the time has passed').to.equal(200);
  });
  it('leaves other callers, and routes that return little, alone', async () => {
    const budget = create();
    await read(budget, caller(1), 2 * READ_BYTES);
    expect(await read(budget, caller(1), 100)).to.include({ status: 429 });
    expect(await read(budget, caller(2), 100)).to.equal(200);
    expect(await read(budget, caller(1), 60_000, '/api/agents/{id}')).to.equal(200);
    expect(await read(budget, caller(1), 60_000, '/api/agents/{id}')).to.equal(200);
  });
  it('is one for all keys of an agent', async () => {
    const budget = create();
    await read(budget, caller(-1, 7), 2 * READ_BYTES);
    expect(await read(budget, caller(-2, 7), 100)).to.include({ status: 429 });
    expect(await read(budget, caller(-3, 8), 100)).to.equal(200);
  });
  it('does not count small responses', async () => {
    const budget = create();
    for (let n = 0; n < 3_000; n++) expect(await read(budget, caller(1), 60_000)).to.equal(200);
  });
  it('is off where rate limits are off', async () => {
    const budget = create(true);
    await read(budget, caller(1), 2 * READ_BYTES);
    expect(await read(budget, caller(1), MB)).to.equal(200);
  });

  /** Starts reads that end when `end` is called. */
  function hold(budget: ReturnType<typeof create>, count: number, bytes: number) {
    const open: (() => void)[] = [];
    let most = 0;
    const all = Array.from({ length: count }, () =>
      budget.run(
        context,
        { identity: caller(1), route: { path: '/api/tasks' } },
        () =>
          new Promise<void>((resolve) => {
            open.push(resolve);
            most = Math.max(most, open.length);
          }),
        () => bytes,
      ),
    );
    return {
      most: () => most,
      async end() {
        while (open.length > 0) {
          open.shift()?.();
          await nextTurn();
        }
        await Promise.all(all);
      },
    };
  }

  it('runs four reads of a caller at once, and others when these end', async () => {
    const budget = create();
    const held = hold(budget, 30, 1);
    await nextTurn();
    expect(await read(budget, caller(2), 1), 'another caller does not wait').to.equal(200);
    await held.end();
    expect(held.most()).to.equal(4);
  });
  it('runs large reads of a caller that has read much one after the other', async () => {
    const budget = create();
    await read(budget, caller(1), 5 * MB);
    const held = hold(budget, 5, 1);
    await nextTurn();
    expect(await read(budget, caller(1), 1, '/api/agents/{id}'), 'small ones do not wait').to.equal(200);
    await held.end();
    expect(held.most()).to.equal(1);
  });
  it('drops a waiting read whose client has left', async () => {
    const budget = create();
    const held = hold(budget, 4, 1);
    await nextTurn();
    const res = { destroyed: false };
    let computed = false;
    const gone = budget
      .run(
        { ...context, res } as RequestContext,
        { identity: caller(1), route: { path: '/api/tasks' } },
        async () => {
          computed = true;
        },
        () => 0,
      )
      .catch((error: AppError) => error.message);
    res.destroyed = true;
    await held.end();
    expect(await gone).to.match(/connection was closed/);
    expect(computed).to.equal(false);
  });
});
