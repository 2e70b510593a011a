/**
 * Bodies of reads as JSON, written in pieces between which other requests are handled. The list of a route with `offset`
 * ends at the size of a page, whatever its records are.
 */
import type { z } from 'zod';
import { PAGE_BYTES } from '../../shared/contract/common.ts';
import { nextPiece } from '../../shared/waiting.ts';
import type { Route, RouteResponse } from './route.ts';

/** Characters that are written before other requests have their turn. */
const PIECE = 250_000;

type Def = z.core.$ZodTypeDef & {
  readonly innerType?: z.core.$ZodType;
  readonly element?: z.core.$ZodType;
  readonly options?: readonly z.core.$ZodType[];
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
};

const defOf = (schema: z.core.$ZodType): Def => {
  const def = schema._zod.def as Def;
  return def.innerType && def.type !== 'array' ? defOf(def.innerType) : def;
};

/** Names of the lists of objects in a body. */
function listsIn(schema: z.core.$ZodType): string[] {
  const { options, shape = {} } = defOf(schema);
  if (options) return options.flatMap(listsIn);
  return Object.entries(shape).flatMap(([name, field]) => {
    const { type, element } = defOf(field);
    return type === 'array' && element && defOf(element).type !== 'string' ? [name] : [];
  });
}

const okOf = ({ responses }: Route) => responses[Math.min(...Object.keys(responses).map(Number))];

/**
 * The list of a route whose pages are read with `offset`; undefined: it has none.
 *
 * @throws Error if the body has several lists and the route does not say which one has the pages
 */
export function pageOf(route: Route): Route['page'] {
  if (!pages.has(route)) pages.set(route, foundPage(route));
  return pages.get(route);
}

const pages = new WeakMap<Route, Route['page']>();

function foundPage({ page, ...route }: Route): Route['page'] {
  const { query } = route;
  const shape = query && defOf(query).shape;
  if (route.method !== 'get' || !shape || !('offset' in shape)) return undefined;
  if (page) return page;
  const schema = okOf(route as Route)?.schema;
  const lists = schema ? listsIn(schema) : [];
  if (lists.length !== 1)
    throw new Error(`${route.path}: \`page\` must name the list that \`offset\` applies to (${lists.join(', ')})`);
  return { list: lists[0] as string };
}

/** Counts written characters; a promise when other requests are due. */
type Pause = (size: number) => Promise<void> | undefined;

/** The texts of a list as JSON, up to the size of a page counted from its first record, or from its last one. */
async function textsOf(values: readonly unknown[], most: number, fromEnd: boolean, pause: Pause) {
  const texts: string[] = [];
  let bytes = 0;
  for (const value of fromEnd ? values.toReversed() : values) {
    const text = JSON.stringify(value) ?? 'null';
    bytes += Buffer.byteLength(text);
    if (bytes > most && texts.length > 0) break;
    texts.push(text);
    const paused = pause(text.length);
    if (paused) await paused;
  }
  return fromEnd ? texts.reverse() : texts;
}

/** A body as JSON. @param page its list, which ends at `pageBytes` */
export async function jsonOf(body: unknown, page: Route['page'], pageBytes = PAGE_BYTES): Promise<Buffer> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return Buffer.from(JSON.stringify(body));
  let written = 0;
  const pause: Pause = (size) => {
    written += size;
    if (written < PIECE) return undefined;
    written = 0;
    return nextPiece();
  };
  const pieces: Buffer[] = [];
  let piece = '';
  const add = (text: string) => {
    piece += text;
    if (piece.length < PIECE) return undefined;
    pieces.push(Buffer.from(piece));
    piece = '';
    return nextPiece();
  };
  let separator = '{';
  let isCut = false;
  for (const [name, value] of Object.entries(body)) {
    const isPage = name === page?.list;
    const list = Array.isArray(value)
      ? await textsOf(value, isPage ? pageBytes : Number.POSITIVE_INFINITY, isPage && page.newestLast === true, pause)
      : undefined;
    isCut ||= list !== undefined && list.length < value.length;
    const text = list ? '[' : name === 'hasMore' && isCut ? 'true' : JSON.stringify(value);
    if (text === undefined) continue;
    await add(`${separator}${JSON.stringify(name)}:${text}`);
    separator = ',';
    for (const [nth, one] of list?.entries() ?? []) {
      const paused = add(nth === 0 ? one : `,${one}`);
      if (paused) await paused;
    }
    if (list) piece += ']';
  }
  pieces.push(Buffer.from(`${piece}${separator === '{' ? '{' : ''}}`));
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
}

/** Waits for other requests before a large body is copied: to its hash, or to a connection. */
export const turnFor = async (body: string | Buffer): Promise<void> => {
  if (body.length > PIECE) await nextPiece();
};

/** A response with its body as JSON. */
export async function written(response: RouteResponse, page: Route['page'], pageBytes: number): Promise<RouteResponse> {
  if (response.text) return response;
  const { body, ...rest } = response;
  const content = await jsonOf(body, page, pageBytes);
  await turnFor(content);
  return { ...rest, text: { type: 'application/json; charset=utf-8', content } };
}
