/**
 * The console: pages for people, at `/`. One HTML file serves every address below; its script reads the address and
 * calls the API like any other client. The build writes the files (`console/build.mjs`).
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { z } from 'zod';
import { AppError } from '../../shared/errors.ts';
import type { RequestContext } from '../http/context.ts';
import { prepare, type Served, serve } from '../http/files.ts';
import { basePathOf } from '../http/public-url.ts';
import { defineRoute, PUBLIC, type Route, type RouteResponse } from '../http/route.ts';
import type { Services } from '../services.ts';

/** Paths of views. Other paths get 404. */
const PAGES = [
  '/',
  ...['/agents', '/agents/{id}', '/tasks', '/tasks/{id}', '/activity', '/audit', '/cost', '/alerts', '/webhooks'],
  ...['/chat', '/chat/{id}', '/log', '/log/{view}', '/admin', '/admin/{view}'],
] as const;

const PAGE = 'index.html';
const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Stricter than for other pages: no inline styles, and no text is parsed as markup. */
const CONTENT_SECURITY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

interface Loaded {
  /** Modification time of the page, Unix ms: the build writes it last. */
  readonly writtenAt: number;
  readonly files: ReadonlyMap<string, Served>;
}

const loaded = new WeakMap<URL, Promise<Loaded>>();

type Source = Pick<Services, 'consoleFolder' | 'settings'>;

/** The files of the folder, by name. They stay in memory until the page is requested after another build. */
async function filesOf(
  { consoleFolder: folder, settings }: Source,
  name: string,
): Promise<ReadonlyMap<string, Served>> {
  const known = await loaded.get(folder)?.catch(() => undefined);
  if (known && (name !== PAGE || known.writtenAt === (await writtenAt(folder)))) return known.files;
  const loading = load(folder, basePathOf(settings));
  loaded.set(folder, loading);
  return (await loading).files;
}

async function writtenAt(folder: URL): Promise<number | undefined> {
  return (await stat(new URL(PAGE, folder)).catch(() => undefined))?.mtimeMs;
}

async function load(folder: URL, base: string): Promise<Loaded> {
  const at = await writtenAt(folder);
  if (at === undefined) throw new AppError(404, 'This build has no console: run `npm run compile`.');
  const names = await readdir(folder);
  const served = names
    .map((name) => ({ name, type: TYPES[name.split('.').at(-1) ?? ''] }))
    .filter((one): one is { name: string; type: string } => one.type !== undefined)
    .map(async ({ name, type }) => {
      const content = await readFile(new URL(name, folder));
      const filled = name === PAGE ? content.toString().replaceAll('{base}', base) : content;
      return [name, await prepare(type, filled)] as const;
    });
  return { writtenAt: at, files: new Map(await Promise.all(served)) };
}

async function send(
  source: Source,
  name: string,
  cacheControl: string,
  context: RequestContext,
): Promise<RouteResponse<never>> {
  const file = (await filesOf(source, name)).get(name);
  if (!file) throw new AppError(404, `No such endpoint: GET /console/${name}. See /api/docs for a list.`);
  return serve(file, cacheControl, context);
}

const hidden = { method: 'get', access: 'public', rules: PUBLIC, hidden: true } as const;

export const consoleRoutes: readonly Route[] = [
  ...PAGES.map((path) =>
    defineRoute({
      ...hidden,
      path,
      summary: 'A view of the console',
      responses: { 200: { description: 'A page', type: 'text/html' } },
      async handle({ context, services }) {
        // Names of the other files change with their content, so only the page needs revalidation.
        const response = await send(services, PAGE, 'no-cache', context);
        const headers = {
          ...response.headers,
          'Content-Security-Policy': CONTENT_SECURITY,
          'Referrer-Policy': 'same-origin',
        };
        return { ...response, headers };
      },
    }),
  ),
  defineRoute({
    ...hidden,
    path: '/console/{file}',
    summary: 'A file of the console',
    params: z.object({ file: z.string() }),
    responses: { 200: { description: 'A file', type: 'text/javascript' } },
    handle: ({ params, context, services }) =>
      send(services, params.file, 'public, max-age=31536000, immutable', context),
  }),
];
