/**
 * Finds the route of a request by the shape of its path, without trying patterns one after the other. Paths work as in
 * Express: case matters, one trailing slash is ignored, and a parameter matches one non-empty segment.
 */
import { parse } from 'node:querystring';
import type { Method, Route } from './route.ts';

/** What a request asks of a route, as texts. */
export interface Asked {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
}

export interface Match extends Asked {
  readonly route: Route;
}

/** A path that has routes, but none for this method. */
export interface OtherMethods {
  readonly route: undefined;
  readonly path: string;
  readonly routes: readonly Route[];
}

/** The routes of each path. Literal segments come before parameters: /api/agents/comms is not an agent called "comms". */
export function byPath(routes: readonly Route[]): readonly (readonly [path: string, routes: readonly Route[]])[] {
  const paths = new Map<string, Route[]>();
  for (const route of routes) paths.set(route.path, [...(paths.get(route.path) ?? []), route]);
  return [...paths].sort(([a], [b]) => (a.replaceAll('{', '~') < b.replaceAll('{', '~') ? -1 : 1));
}

/**
 * What a path has in common with the routes that can match it: resource and number of segments, such as `/api/agents 4`
 * for `/api/agents/7/keys`.
 */
const shapeOf = (segments: readonly string[]): string =>
  `/${segments[0] === 'api' && segments.length > 1 ? `api/${segments[1]}` : (segments[0] ?? '')} ${segments.length}`;

/** Without a trailing slash. */
function segmentsOf(path: string): readonly string[] {
  const segments = path.split('/');
  segments.shift();
  if (segments.at(-1) === '') segments.pop();
  return segments;
}

interface Pattern {
  readonly path: string;
  /** Undefined: a parameter. */
  readonly literals: readonly (string | undefined)[];
  readonly names: readonly (string | undefined)[];
  readonly all: readonly Route[];
  readonly routes: ReadonlyMap<string, Route>;
}

function patternOf(path: string, all: readonly Route[]): Pattern {
  const segments = segmentsOf(path);
  const names = segments.map((segment) => /^\{(\w+)\}$/.exec(segment)?.[1]);
  const routes = new Map<string, Route>(all.map((route) => [route.method.toUpperCase() as Uppercase<Method>, route]));
  const get = routes.get('GET');
  return {
    path,
    literals: segments.map((segment, at) => (names[at] === undefined ? segment : undefined)),
    names,
    all,
    routes: get ? new Map([['HEAD', get], ...routes]) : routes,
  };
}

/**
 * Finds the match of a request target that begins with `/`; undefined if there is no such path.
 *
 * @throws URIError for a parameter with invalid percent-encoding
 */
export type Matcher = (method: string, url: string) => Match | OtherMethods | undefined;

export function createMatcher(routes: readonly Route[]): Matcher {
  const shapes = new Map<string, Pattern[]>();
  for (const [path, here] of byPath(routes)) {
    const shape = shapeOf(segmentsOf(path));
    shapes.set(shape, [...(shapes.get(shape) ?? []), patternOf(path, here)]);
  }
  return (method, target) => {
    const url = target.includes('#') ? target.slice(0, target.indexOf('#')) : target;
    const mark = url.indexOf('?');
    const segments = segmentsOf(mark < 0 ? url : url.slice(0, mark));
    if (segments.includes('')) return undefined;
    const found = shapes
      .get(shapeOf(segments))
      ?.find(({ literals }) => literals.every((literal, at) => literal === undefined || literal === segments[at]));
    if (!found) return undefined;
    const params: Record<string, string> = {};
    for (const [at, name] of found.names.entries()) {
      if (name !== undefined) params[name] = decoded(segments[at] as string);
    }
    const route = found.routes.get(method);
    if (!route) return { route, path: found.path, routes: found.all };
    return { route, params, query: parse(mark < 0 ? '' : url.slice(mark + 1)) };
  };
}

const decoded = (segment: string): string => (segment.includes('%') ? decodeURIComponent(segment) : segment);
