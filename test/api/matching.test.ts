/** A request finds the route that Express would find. */
import { expect } from 'chai';
import express from 'express';
import fc from 'fast-check';
import { byPath, createMatcher } from '../../api/http/matching.ts';
import type { Route } from '../../api/http/route.ts';
import { routes } from '../../api/routes/index.ts';

interface Found {
  readonly route: Route;
  readonly params: object;
  readonly query: object;
}

/** What Express finds: a route, a path that has none for the method, an error, or nothing. */
type Reference = Found | { readonly path: string } | 'refused' | undefined;

function withExpress(): (method: string, url: string) => Reference {
  let found: Reference;
  const app = express();
  app.disable('x-powered-by');
  app.set('query parser', 'simple');
  app.set('case sensitive routing', true);
  for (const [path, here] of byPath(routes)) {
    const pattern = path.replace(/\{(\w+)\}/g, ':$1');
    for (const route of here)
      app[route.method](pattern, (req) => {
        found = { route, params: { ...req.params }, query: { ...req.query } };
      });
    // Another method of a path is no call of a path that comes later.
    app.all(pattern, () => {
      found = { path };
    });
  }
  return (method, url) => {
    found = undefined;
    const noRoute = (error?: unknown) => {
      if (error !== undefined) found = 'refused';
    };
    (app as unknown as (req: object, res: object, next: (error?: unknown) => void) => void)(
      { method, url, headers: {} },
      {},
      noRoute,
    );
    return found;
  };
}

describe('route matching', () => {
  const match = createMatcher(routes);
  const reference = withExpress();
  const found = (method: string, url: string): Reference => {
    try {
      const one = match(method, url);
      if (one?.route) return { ...one, params: { ...one.params }, query: { ...one.query } };
      return one && { path: one.path };
    } catch (error) {
      if (error instanceof URIError) return 'refused';
      throw error;
    }
  };

  it('finds every route by its path, with parameters and query', () => {
    for (const route of routes) {
      const url = `${route.path.replace(/\{(\w+)\}/g, 'x%20$1')}?a=1&a=2&b=%41`;
      const method = route.method.toUpperCase();
      expect(found(method, url), `${method} ${url}`).to.have.property('route', route);
      expect(found(method, url)).to.deep.equal(reference(method, url));
    }
  });

  it('treats HEAD, other methods and slashes as Express does', () => {
    const agents = '/api/agents';
    for (const url of [agents, `${agents}/`, `${agents}#x`, `${agents}/?a=1#x?b`])
      for (const method of ['GET', 'HEAD']) expect(found(method, url), url).to.have.property('route');
    for (const method of ['PATCH', 'OPTIONS', 'BREW']) expect(found(method, agents)).to.deep.equal({ path: agents });
    for (const url of ['/api//agents', '//api/agents', '/api/agents//', '/api', '/API/agents', '/%', '//'])
      expect(found('GET', url), url).to.equal(undefined);
    expect(found('GET', '/api/agents/%')).to.equal('refused');
    expect(found('GET', '/')).to.have.property('route');
  });

  it('matches what Express matches, and nothing else', () => {
    const words = [...new Set(routes.flatMap(({ path }) => path.split('/')).filter((word) => /^[\w.-]+$/.test(word)))];
    const segment = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...words) },
      { weight: 3, arbitrary: fc.constantFrom('7', 'Agents', '%41', 'a%2Fb', 'a:b', '{id}') },
      { weight: 1, arbitrary: fc.constantFrom('', '%', '%zz', '..') },
    );
    const path = fc.oneof(
      fc.array(segment, { maxLength: 6 }).map((all) => `/api/${all.join('/')}`),
      fc.constantFrom(...routes).chain(({ path: one }) => {
        const parts = one.split('/').slice(1);
        return fc
          .tuple(...parts.map((part) => (part.startsWith('{') ? segment : fc.constant(part))))
          .map((all) => `/${all.join('/')}`);
      }),
    );
    const query = fc.constantFrom('', '?', '?a=1', '?a=%zz&b', '?a?b');
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS');
    fc.assert(
      fc.property(method, path, query, (verb, where, asked) => {
        const url = where + asked;
        expect(found(verb, url), `${verb} ${url}`).to.deep.equal(reference(verb, url));
      }),
      { numRuns: 2_000 },
    );
  });
});
