/** A request finds the same route without Express as with it. */
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

/** What Express finds: nothing where it would answer 404 or 405, or refuse the path. */
function withExpress(): (method: string, url: string) => Found | undefined {
  let found: Found | undefined;
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
    app.all(pattern, () => undefined);
  }
  return (method, url) => {
    found = undefined;
    const nobody = () => undefined;
    (app as unknown as (req: object, res: object, next: () => void) => void)({ method, url, headers: {} }, {}, nobody);
    return found;
  };
}

describe('matching of requests', () => {
  const match = createMatcher(routes);
  const reference = withExpress();
  const found = (method: string, url: string): Found | undefined => {
    const one = match(method, url);
    return one && { ...one, params: { ...one.params }, query: { ...one.query } };
  };

  it('finds every route by its path, with parameters and query', () => {
    // The root has no segment: Express answers it.
    for (const route of routes.filter(({ path }) => path !== '/')) {
      const url = `${route.path.replace(/\{(\w+)\}/g, 'x%20$1')}?a=1&a=2&b=%41`;
      const method = route.method.toUpperCase();
      expect(found(method, url)?.route, `${method} ${url}`).to.equal(route);
      expect(found(method, url)).to.deep.equal(reference(method, url));
    }
  });

  it('leaves to Express what is not a plain path, and other methods', () => {
    for (const url of ['/api/agents/', '//api/agents', '/api//agents', '/api/agents#x', '/api/agents/%', '/api', '/'])
      expect(match('GET', url), url).to.equal(undefined);
    expect(match('HEAD', '/api/agents')).to.equal(undefined);
    expect(match('PATCH', '/api/agents')).to.equal(undefined);
    expect(match('GET', '/API/agents')).to.equal(undefined);
  });

  it('never finds what Express does not, and misses nothing on plain paths', () => {
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
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE');
    fc.assert(
      fc.property(method, path, query, (verb, where, asked) => {
        const url = where + asked;
        const expected = reference(verb, url);
        const plain = !where.split('/').slice(1).includes('');
        if (match(verb, url) || plain) expect(found(verb, url), `${verb} ${url}`).to.deep.equal(expected);
      }),
      { numRuns: 2_000 },
    );
  });
});
