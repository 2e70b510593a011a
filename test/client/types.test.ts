/** What does not match the description must not compile: `npm run typecheck` fails if one of these lines does. */
import { expect } from 'chai';
import { createClient } from '../../client/index.ts';

const { call } = createClient({ fetch: async () => new Response('{}'), retries: 0 });

/** Compiled, never run. */
const examples = async () => {
  await call('GET /api/agents');
  await call('GET /api/agents', { query: { limit: 5 } });
  await call('GET /api/agents/{id}', { params: { id: 1 } });
  const { data } = await call('POST /api/agents', { body: { name: 'scout', role: 'researcher' } });
  data.agent.name satisfies string;

  // @ts-expect-error: there is no such call
  await call('GET /api/agent');
  // @ts-expect-error: the path has a parameter
  await call('GET /api/agents/{id}');
  // @ts-expect-error: the parameter has another name
  await call('GET /api/agents/{id}', { params: { name: 'scout' } });
  // @ts-expect-error: the call needs a body
  await call('POST /api/agents');
  // @ts-expect-error: role is missing
  await call('POST /api/agents', { body: { name: 'scout' } });
  // @ts-expect-error: a wrong field
  await call('POST /api/agents', { body: { name: 'scout', role: 'researcher', colour: 'red' } });
  // @ts-expect-error: a wrong value
  await call('POST /api/agents', { body: { name: 'scout', role: 'researcher', status: 'asleep' } });
  // @ts-expect-error: a wrong filter
  await call('GET /api/agents', { query: { name: 'scout' } });
  // @ts-expect-error: the response has no such field
  data.agent.colour;
};

describe('client types', () => {
  it('are checked by the compiler', () => {
    expect(examples).to.be.a('function');
  });
  it('report a missing path parameter even without a compiler', async () => {
    const loose = call as (name: string) => Promise<unknown>;
    const error = await loose('GET /api/agents/{id}').catch((reason: unknown) => reason);
    expect(String(error)).to.equal('TypeError: GET /api/agents/{id}: params.id is missing');
  });
});
