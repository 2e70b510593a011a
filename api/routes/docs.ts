/**
 * The description of the API: as JSON at /api/docs, and as an interactive page at /docs.
 *
 * The page is Swagger UI from its npm package, plus three small files of our own. Everything comes from this server,
 * and no script is inline, so the page works offline and under the server's Content-Security-Policy.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { z } from 'zod';
import { once, prepare, serve } from '../http/files.ts';
import { basePathOf } from '../http/public-url.ts';
import { defineRoute, PUBLIC, type Route } from '../http/route.ts';
import { describeApi, UNCHANGED } from '../openapi.ts';

const INIT_SCRIPT = `\
// Starts the page. Loaded after swagger-ui-bundle.js.
const dark = matchMedia('(prefers-color-scheme: dark)');
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followScheme);
followScheme();

// The filter of Swagger UI searches only tags, and is case-sensitive; this one searches paths and summaries too.
const findOperations = () => ({
  fn: {
    opsFilter(tags, phrase) {
      const wanted = phrase.trim().toLowerCase();
      const has = (text) => String(text ?? '').toLowerCase().includes(wanted);
      const fits = (one) => has(one.get('method') + ' ' + one.get('path')) || has(one.getIn(['operation', 'summary']));
      return tags
        .map((tag, name) => (has(name) ? tag : tag.update('operations', (all) => all.filter(fits))))
        .filter((tag) => tag.get('operations').size > 0);
    },
  },
});

// This script is at docs/init.js, below the path of the service.
const service = new URL('..', document.currentScript.src);

SwaggerUIBundle({
  url: new URL('api/docs', service).href,
  dom_id: '#reference',
  deepLinking: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
  filter: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  showCommonExtensions: true, // bounds of parameters
  plugins: [findOperations],
  // After an upgrade the browser must not show its cached copy; revalidating an unchanged description costs a 304.
  requestInterceptor: (request) => {
    if (request.loadSpec) return Object.assign(request, { cache: 'no-cache' });
    // The description names PUBLIC_URL. Calls go to the address of this page, as the Content-Security-Policy wants it.
    const { pathname, search } = new URL(request.url, service);
    return Object.assign(request, { url: location.origin + pathname + search });
  },
  onComplete() {
    const filter = document.querySelector('.operation-filter-input');
    if (filter) filter.placeholder = 'Filter by tag, path or summary';
  },
});
`;

const PAGE_STYLE = `\
body { margin: 0; background: #fff; color: #1f2933; font-family: system-ui, sans-serif; }
.masthead { display: flex; align-items: center; gap: .6rem; padding: .55rem 1.25rem; background: #16324f; color: #fff; }
.masthead img { width: 1.5rem; height: 1.5rem; }
.masthead strong { font-size: 1.05rem; letter-spacing: .01em; }
.masthead span { opacity: .75; }
@media (max-width: 30rem) { .masthead span { display: none; } }
.masthead a { margin-left: auto; color: #fff; font-size: .9rem; }
.note { max-width: 1420px; margin: 2rem auto; padding: 0 1.25rem; }
.swagger-ui .info { margin: 1.75rem 0 1rem; }
.swagger-ui .info .title { font-size: 1.6rem; }
.swagger-ui .info hgroup a.link, .swagger-ui .scheme-container .schemes > .schemes-server-container { display: none; }
.swagger-ui .scheme-container .schemes { justify-content: flex-end; }
.swagger-ui .info p { max-width: 46rem; margin-inline: 0; line-height: 1.5; }
.swagger-ui .scheme-container { padding: .75rem 0; box-shadow: none; border-block: 1px solid #d9e2ec; }
.swagger-ui .filter .operation-filter-input { margin: 1rem 0; }
.dark-mode body { background: #1c2022; color: #e4e7eb; }
.dark-mode .swagger-ui .scheme-container { border-color: #3b4151; }
`;

/** A railway signal with its light on. */
const ICON = `\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect x="9" y="2" width="14" height="22" rx="7" fill="#243b53" stroke="#fff" stroke-width="1.5"/>
<circle cx="16" cy="9" r="4" fill="#52606d"/><circle cx="16" cy="17" r="4" fill="#3ebd93"/>
<rect x="14.5" y="24" width="3" height="7" fill="#9fb3c8"/></svg>
`;

const swaggerFile = (name: string) => readFile(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`));

/** All files below /docs/. */
const ASSETS: Readonly<Record<string, readonly [type: string, content: () => string | Promise<Buffer>]>> = {
  'swagger-ui.css': ['text/css; charset=utf-8', () => swaggerFile('swagger-ui.css')],
  'swagger-ui-bundle.js': ['text/javascript; charset=utf-8', () => swaggerFile('swagger-ui-bundle.js')],
  'page.css': ['text/css; charset=utf-8', () => PAGE_STYLE],
  'init.js': ['text/javascript; charset=utf-8', () => INIT_SCRIPT],
  'icon.svg': ['image/svg+xml', () => ICON],
};

/** `address` gives the URL of an asset, including a hash of its content, so that a cached old version is never used. */
const pageOf = (base: string, address: (asset: string) => string) => `\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Signalbox API reference</title>
<link rel="icon" type="image/svg+xml" href="${address('icon.svg')}">
<link rel="stylesheet" href="${address('swagger-ui.css')}">
<link rel="stylesheet" href="${address('page.css')}">
<script defer src="${address('swagger-ui-bundle.js')}"></script>
<script defer src="${address('init.js')}"></script>
</head>
<body>
<header class="masthead"><img src="${address('icon.svg')}" alt=""><strong>Signalbox</strong><span>API reference</span>
<a href="${base}/api/docs">OpenAPI (JSON)</a></header>
<noscript><p class="note">This page needs JavaScript. <a href="${base}/api/docs">/api/docs</a> has the same as JSON.</p></noscript>
<main id="reference"></main>
</body>
</html>
`;

/** Calls `make` at the first use with a public URL, of which a process has one. */
function oncePerUrl<T>(make: (publicUrl: string | undefined) => Promise<T>): typeof make {
  const made = new Map<string | undefined, () => Promise<T>>();
  return (publicUrl) => {
    const known = made.get(publicUrl) ?? once(() => make(publicUrl));
    made.set(publicUrl, known);
    return known();
  };
}

/** @param routes all routes of the API, including these; called at the first request */
export function docsRoutes(routes: () => readonly Route[]): readonly Route[] {
  const description = oncePerUrl(async (publicUrl) =>
    prepare('application/json', JSON.stringify(describeApi(routes(), { publicUrl }))),
  );
  const assets = Object.entries(ASSETS).map(([name, [type, content]]) => ({
    name,
    type,
    load: once(async () => prepare(type, await content())),
  }));
  const page = oncePerUrl(async (publicUrl) => {
    const base = basePathOf({ publicUrl });
    const hashes = new Map<string, string>();
    for (const { name, load } of assets) hashes.set(name, (await load()).hash);
    const html = pageOf(base, (name) => `${base}/docs/${name}?v=${hashes.get(name)}`);
    return prepare('text/html; charset=utf-8', html);
  });
  const hidden = { method: 'get', access: 'public', rules: PUBLIC, hidden: true } as const;
  return [
    defineRoute({
      method: 'get',
      path: '/api/docs',
      noPast: 'the description is part of the program',
      summary: 'Get this description (OpenAPI 3.1)',
      description: 'Generated from the schemas that validate the requests. `/docs` shows it as a page.',
      access: 'public',
      rules: PUBLIC,
      responses: {
        200: { description: 'An OpenAPI 3.1 document', schema: z.record(z.string(), z.unknown()) },
        304: UNCHANGED,
      },
      handle: async ({ context, services }) =>
        serve(await description(services.settings.publicUrl), 'public, max-age=3600', context),
    }),
    defineRoute({
      ...hidden,
      path: '/docs',
      summary: 'The description as a page',
      responses: { 200: { description: 'A page', type: 'text/html' } },
      // The page refers to its assets by content, so browsers must revalidate it, which costs only a 304.
      handle: async ({ context, services }) => serve(await page(services.settings.publicUrl), 'no-cache', context),
    }),
    ...assets.map(({ name, type, load }) =>
      defineRoute({
        ...hidden,
        path: `/docs/${name}`,
        summary: `A file of the page: ${name}`,
        responses: { 200: { description: 'A file', type } },
        handle: async ({ context }) => serve(await load(), 'public, max-age=86400', context),
      }),
    ),
  ];
}
