/**
 * The console in Chromium on a large log, on PostgreSQL: first load, views after a click, the register dragged.
 *
 * Needs `BENCH_DATABASE_URL` and `TEST_CHROMIUM`. `BENCH_CONSOLE_EVENTS` and `BENCH_CONSOLE_TASKS` set the size (1,000,000
 * and 100,000); with `BENCH_CONSOLE_DATABASE`, an existing database is used instead.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { rebuildProjections } from '../../infra/read-models/rebuild/rebuild.ts';
import { projections } from '../../projections/index.ts';
import { Browser, CHROMIUM, type Page } from '../console/browser.ts';
import { KEY, startProcess, temporaryDirectory } from '../support/service-process.ts';
import { fill } from './past.ts';
import { openPlace } from './rebuild.ts';
import { freshBenchDatabase, median, table } from './report.ts';

const ROUNDS = 9;
/** How long the service may take on a filled database until it is ready and has read the log, milliseconds. */
const CATCH_UP_MS = 3_600_000;
const USER = 'bench';
const PASSWORD = 'correct horse battery';
const VIEWS = [
  '/agents',
  '/tasks',
  '/activity',
  '/cost',
  '/alerts',
  '/chat',
  '/audit',
  '/webhooks',
  '/log',
  '/admin',
  '/',
];
const DRAGGED = ['/', '/agents', '/tasks?view=table', '/activity', '/tasks/7'];

const ms = (values: readonly number[]): string[] => [median(values).toFixed(0), Math.max(...values).toFixed(0)];

/** In the page: resolves with the milliseconds from an event until the view is drawn and nothing is being read. */
const HELPERS = `
  window.settled = (isThere) => new Promise((done) => {
    const begun = performance.now();
    const look = () => {
      if (isThere() && document.querySelector('main#view h1') && !document.querySelector('main .loading, main .old'))
        requestAnimationFrame(() => done(performance.now() - begun));
      else if (performance.now() - begun > 60000) done(NaN);
      else requestAnimationFrame(look);
    };
    // What a click or a drag changed is drawn by the next frame.
    requestAnimationFrame(look);
  });
  window.clicked = (path) => {
    const link = [...document.querySelectorAll('.rail a')].find((one) => new URL(one.href).pathname === path);
    link.click();
    return window.settled(() => location.pathname === path);
  };
  new MutationObserver((_, me) => {
    if (!document.querySelector('main#view h1')) return;
    window.framed = performance.now();
    me.disconnect();
  }).observe(document, { childList: true, subtree: true });
  const moment = () => new URLSearchParams(location.search).get('at');
  addEventListener('pointerup', () => {
    const before = moment();
    window.dragged = window.settled(() => moment() !== before);
  }, true);
`;

async function cookieOf(url: string): Promise<readonly [name: string, value: string]> {
  const post = (path: string, body: unknown) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': KEY },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(120_000),
    });
  await post('/api/auth/users', { username: USER, password: PASSWORD, role: 'admin' });
  const response = await post('/api/auth/login', { username: USER, password: PASSWORD });
  const [cookie = ''] = response.headers.getSetCookie();
  if (!response.ok) throw new Error(`sign-in: ${response.status} ${await response.text()}`);
  const [name = '', value = ''] = cookie.slice(0, cookie.indexOf(';')).split(/=(.*)/);
  return [name, value];
}

async function open(browser: Browser, url: string, [name, value]: readonly [string, string]): Promise<Page> {
  const page = await browser.page();
  await page.send('Network.setCookie', { url, name, value, httpOnly: true, sameSite: 'Strict' });
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source: HELPERS });
  return page;
}

export async function measureConsole(url: string): Promise<void> {
  const cookie = await cookieOf(url);
  const browser = await Browser.open();
  const rows: string[][] = [];
  try {
    const framed: number[] = [];
    const complete: number[] = [];
    let bytes = 0;
    for (let n = 0; n < ROUNDS; n++) {
      const page = await open(browser, url, cookie);
      await page.goto(url);
      await page.ask('window.settled(() => true)');
      complete.push(await page.ask<number>('performance.now()'));
      framed.push(await page.ask<number>('window.framed'));
      bytes = await page.ask<number>(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource').filter((one) => one.name.includes('/console/'))].reduce((sum, one) => sum + one.transferSize, 0)",
      );
      await browser.closePages();
    }
    rows.push(['first load, transferred, kB', (bytes / 1000).toFixed(1), '']);
    rows.push(['first load, frame is shown and takes keys, ms', ...ms(framed)]);
    rows.push(['first load, overview complete, ms', ...ms(complete)]);
    const page = await open(browser, url, cookie);
    await page.goto(url);
    await page.ask('window.settled(() => true)');
    const cold: number[] = [];
    const warm: number[] = [];
    for (const times of [cold, warm])
      for (const path of VIEWS) times.push(await page.ask<number>(`window.clicked(${JSON.stringify(path)})`));
    rows.push([`a view after a click, not read before (${VIEWS.length} views), ms`, ...ms(cold)]);
    rows.push(['a view after a click, cached responses, ms', ...ms(warm)]);
    for (const path of DRAGGED) {
      const times: number[] = [];
      await page.goto(`${url}${path}${path.includes('?') ? '&' : '?'}range=all`);
      await page.ask('window.settled(() => true)');
      const strip = await page.ask<{ x: number; y: number; width: number }>(
        "(({ x, y, width }) => ({ x, y, width }))(document.querySelector('.strip').getBoundingClientRect())",
      );
      for (let n = 0; n < ROUNDS; n++) {
        // Each moment is a new one, all over the log.
        const x = strip.x + strip.width * (0.2 + 0.7 * ((n * 0.618) % 1));
        await page.mouse('mousePressed', x - 8, strip.y + 20);
        await page.mouse('mouseReleased', x, strip.y + 20);
        times.push(await page.ask<number>('window.dragged'));
      }
      rows.push([`register dragged at ${path}, to the picture, ms`, ...ms(times)]);
    }
    if (page.faults.length > 0) throw new Error(page.faults.join('\n'));
  } finally {
    await browser.close();
  }
  console.log(table(['console', 'median', 'highest'], rows));
}

async function prepare(url: string, events: number, tasks: number): Promise<void> {
  const place = { url, dataDir: '' };
  await fill(place, events, tasks);
  const opened = await openPlace(place);
  try {
    await rebuildProjections(opened, projections, { farBehind: 0, history: true });
  } finally {
    await opened.close();
  }
}

/** Waits until the policies have read the log: on a filled database they begin at its start, and readiness does not wait for them. */
async function caughtUp(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const end = performance.now() + CATCH_UP_MS; ; ) {
      const { rows } = await client.query<{ behind: number }>(
        'SELECT (SELECT max(position) FROM log.events)::float8 - min(position)::float8 AS behind FROM service.checkpoints WHERE schema_name LIKE $1',
        ['policy%'],
      );
      // Scheduled tasks append while it is waited for.
      if ((rows[0]?.behind ?? 0) < 1_000) return;
      if (performance.now() > end) throw new Error(`still ${rows[0]?.behind} events behind after ${CATCH_UP_MS} ms`);
      await sleep(1_000);
    }
  } finally {
    await client.end();
  }
}

export async function benchConsole(): Promise<void> {
  const { BENCH_DATABASE_URL, BENCH_CONSOLE_DATABASE } = process.env;
  if (!CHROMIUM || !(BENCH_DATABASE_URL || BENCH_CONSOLE_DATABASE)) return;
  const events = Number(process.env.BENCH_CONSOLE_EVENTS ?? 1_000_000);
  const tasks = Number(process.env.BENCH_CONSOLE_TASKS ?? 100_000);
  const fresh = BENCH_CONSOLE_DATABASE
    ? { url: BENCH_CONSOLE_DATABASE, drop: async () => undefined }
    : await freshBenchDatabase(BENCH_DATABASE_URL as string);
  const directory = await temporaryDirectory();
  try {
    if (!BENCH_CONSOLE_DATABASE) await prepare(fresh.url, events, tasks);
    const service = await startProcess(directory.path, { DATABASE_URL: fresh.url }, [], CATCH_UP_MS);
    try {
      await caughtUp(fresh.url);
      console.log(`\n### The console\n`);
      await measureConsole(service.url);
    } finally {
      await service.stop();
    }
  } finally {
    await directory.remove();
    await fresh.drop();
  }
}
