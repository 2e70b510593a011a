/** The resources of MCP: responses of some routes, by URI, such as `task://7` or `task://7?as_of=120`. */
import { hasPast, type InnerCall, type Route } from '../http/route.ts';
import { declaredOn } from './tools.ts';

export interface ResourceTemplate {
  /** RFC 6570. */
  readonly uriTemplate: string;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly mimeType: 'application/json';
  readonly route: Route;
  /** The call that reads a URI; undefined if the URI does not match this template. */
  readonly callOf: (uri: string) => Omit<InnerCall, 'via'> | undefined;
}

/** @throws Error unless the template has exactly one variable, which is also in the path */
function templateOf(route: Route, template: string): ResourceTemplate {
  const [, scheme = '', name = ''] = /^(\w+):\/\/\{(\w+)\}$/.exec(template) ?? [];
  if (name === '' || !route.path.includes(`{${name}}`))
    throw new Error(`${template}: must be <scheme>://{<parameter of the path>}`);
  const pattern = new RegExp(`^${scheme}://([^/?#]+)${hasPast(route) ? '(?:\\?as_of=([^&#]+))?' : ''}$`);
  return {
    uriTemplate: hasPast(route) ? `${template}{?as_of}` : template,
    name: scheme,
    title: route.summary,
    description: [`${route.summary}.`, route.description].filter(Boolean).join('\n\n'),
    mimeType: 'application/json',
    route,
    callOf(uri) {
      const [, value, asOf] = pattern.exec(uri) ?? [];
      if (value === undefined) return undefined;
      try {
        const query: Record<string, string> = asOf === undefined ? {} : { as_of: decodeURIComponent(asOf) };
        return { route, params: { [name]: decodeURIComponent(value) }, query };
      } catch {
        // Invalid percent-encoding.
        return undefined;
      }
    },
  };
}

export const resourcesOf = (routes: readonly Route[]): readonly ResourceTemplate[] =>
  routes.flatMap((route) =>
    declaredOn(route).flatMap(({ resource }) => (resource === undefined ? [] : [templateOf(route, resource)])),
  );
