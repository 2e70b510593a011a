/** The cache of responses: which requests get the same response. */
import { expect } from 'chai';
import { z } from 'zod';
import type { RequestContext } from '../../api/http/context.ts';
import { createReadBudget } from '../../api/http/read-budget.ts';
import { type CachedRoute, createResponseCache } from '../../api/http/response-cache.ts';
import { defineCachedRoute } from '../../api/http/route.ts';
import { limitParam, offsetParam, PAGE_BYTES, TOOL_PAGE_BYTES } from '../../shared/contract/common.ts';
import type { Identity } from '../../shared/identity.ts';

const query = z.object({ limit: limitParam(50), offset: offsetParam });
const route = defineCachedRoute({
  method: 'get',
  path: '/api/things',
  summary: '',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query,
  responses: { 200: { description: '', schema: z.object({ things: z.array(z.object({})) }) } },
  cache: { models: ['things'] },
  respond: async () => ({ things: [] }),
}) as CachedRoute;
const identity = { kind: 'user', id: 1, tenant: 1, workspace: 1, agentId: null } as Identity;

function setUp() {
  const freshness = { stamp: async () => ({ value: '1', position: 1 }), credentials: async () => '' };
  const budget = createReadBudget({ now: () => 0, isOff: false }, () => undefined);
  const cache = createResponseCache(freshness, () => 0, budget);
  let made = 0;
  const contextOf = (url: string, control?: string) => {
    const res = {
      setHeader: () => undefined,
      removeHeader: () => undefined,
      end: () => undefined,
      destroyed: false,
      headersSent: false,
    };
    return {
      req: { originalUrl: url, method: 'GET', headers: { 'cache-control': control } },
      res,
    } as unknown as RequestContext;
  };
  return {
    made: () => made,
    get: (url: string, control?: string, via?: 'mcp') =>
      cache.send(
        route,
        { ...contextOf(url, control), ...(via && { via }) },
        {
          identity,
          at: {},
          params: {},
          query: query.parse(Object.fromEntries(new URL(url, 'http://x').searchParams)),
          pageBytes: via ? TOOL_PAGE_BYTES : PAGE_BYTES,
        },
        async () => ({ content: { things: [{ n: made++ }] }, position: 1, isExact: true }),
      ),
    isKnown: (url: string) => cache.routeOf(url) !== undefined,
    getCached: (url: string) => cache.sendCached(route, contextOf(url), identity, {}),
  };
}

describe('response cache', () => {
  it('has one response for all values of an unknown parameter', async () => {
    const { get, made, isKnown } = setUp();
    for (let n = 0; n < 20; n++) await get(`/api/things?limit=5&unknown=${n}`);
    await get('/api/things?limit=5');
    expect(made()).to.equal(1);
    expect(isKnown('/api/things?limit=5&unknown=3'), 'the URL takes no place').to.equal(false);
    expect(isKnown('/api/things?limit=5')).to.equal(true);
  });
  it('has one response for each meaning of the known parameters', async () => {
    const { get, getCached, made } = setUp();
    for (const url of ['', '?limit=50', '?offset=0&limit=50', '?limit=none', '?offset=-1'])
      await get(`/api/things${url}`);
    expect(made()).to.equal(1);
    await get('/api/things?offset=1');
    expect(made()).to.equal(2);
    expect(await getCached('/api/things?offset=1')).to.equal(true);
    expect(await getCached('/api/things?offset=2')).to.equal(false);
  });
  it('computes a response again for a request with Cache-Control: no-cache', async () => {
    const { get, getCached, made } = setUp();
    await get('/api/things');
    await get('/api/things', 'no-cache');
    expect(made()).to.equal(2);
    expect(await getCached('/api/things')).to.equal(true);
  });
  it('has a response of its own for an MCP tool, which no HTTP request gets', async () => {
    const { get, getCached, made } = setUp();
    await get('/api/things', undefined, 'mcp');
    expect(await getCached('/api/things')).to.equal(false);
    await get('/api/things');
    expect(made()).to.equal(2);
  });
  it('computes a response once for concurrent requests', async () => {
    const { get, made } = setUp();
    await Promise.all(Array.from({ length: 20 }, (_, n) => get(`/api/things?unknown=${n}`)));
    expect(made()).to.equal(1);
  });
});
