/**
 * Finds the route of a request by the shape of its path, without trying one pattern after the other. Whatever it does not
 * find as it stands (other methods, empty segments, what is not valid percent-encoding) is left to Express, which has the
 * same routes in the same order.
 */
import { parse } from 'node:querystring';
import type { Method, Route } from './route.ts';

/** What a request asks a route for, as texts. */
export interface Asked {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
}

export interface Match extends Asked {
  readonly route: Route;
}

/** The routes of each path. Literal segments come before parameters: /api/agents/comms is not an agent called "comms". */
export function byPath(routes: readonly Route[]): readonly (readonly [path: string, routes: readonly Route[]])[] {
  const paths = new Map<string, Route[]>();
  for (const route of routes) paths.set(route.path, [...(paths.get(route.path) ?? []), route]);
  return [...paths].sort(([a], [b]) => (a.replaceAll('{', '~') < b.replaceAll('{', '~') ? -1 : 1));
}

/**
 * What a path shares with the routes it can match: resource and number of segments, such as `/api/agents 4` for
 * `/api/agents/7/keys`. A parameter stands for one segment.
 */
export function shapeOf(path: string): string {
  return shapeOfSegments(path.split('/').filter((segment) => segment !== ''));
}

const shapeOfSegments = (segments: readonly string[]): string =>
  `/${segments[0] === 'api' && segments.length > 1 ? `api/${segments[1]}` : (segments[0] ?? '')} ${segments.length}`;

interface Pattern {
  /** Undefined: a parameter. */
  readonly literals: readonly (string | undefined)[];
  readonly names: readonly (string | undefined)[];
  readonly routes: ReadonlyMap<string, Route>;
}

function patternOf(path: string, routes: readonly Route[]): Pattern {
  const segments = path.split('/').slice(1);
  const names = segments.map((segment) => /^\{(\w+)\}$/.exec(segment)?.[1]);
  return {
    literals: segments.map((segment, at) => (names[at] === undefined ? segment : undefined)),
    names,
    routes: new Map([...routes].reverse().map((route) => [route.method.toUpperCase() as Uppercase<Method>, route])),
  };
}

/** @returns the route for a method and a request target that begins with `/`; undefined where Express has to look */
export function createMatcher(routes: readonly Route[]): (method: string, url: string) => Match | undefined {
  const shapes = new Map<string, Pattern[]>();
  for (const [path, here] of byPath(routes)) {
    const shape = shapeOf(path);
    shapes.set(shape, [...(shapes.get(shape) ?? []), patternOf(path, here)]);
  }
  return (method, url) => {
    if (url.includes('#')) return undefined;
    const mark = url.indexOf('?');
    const segments = (mark < 0 ? url : url.slice(0, mark)).split('/');
    segments.shift();
    if (segments.includes('')) return undefined;
    const found = shapes
      .get(shapeOfSegments(segments))
      ?.find(({ literals }) => literals.every((literal, at) => literal === undefined || literal === segments[at]));
    const route = found?.routes.get(method);
    if (!found || !route) return undefined;
    const params: Record<string, string> = {};
    for (const [at, name] of found.names.entries()) {
      if (name === undefined) continue;
      const value = decoded(segments[at] as string);
      if (value === undefined) return undefined;
      params[name] = value;
    }
    return { route, params, query: parse(mark < 0 ? '' : url.slice(mark + 1)) };
  };
}

function decoded(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
