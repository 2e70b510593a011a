/**
 * Fails the tests of a file in which a request reads at the head of the log after it has appended: it would wait for its own events,
 * and be refused with 503 `READ_MODEL_BEHIND` although they are stored. mocha loads this file (`.mocharc.json`).
 *
 * Responses of writes are worked out from the stream (`queries/records.ts`), names are shown as they are, and further
 * reads of a write are as of its arrival: `reads.at({ since: context.startedAt })`.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Server } from 'node:http';
import { Appender } from '../../infra/postgres/append.ts';
import { Positions } from '../../infra/read-models/positions.ts';
import type { ReadAt } from '../../shared/ports/read-models.ts';

/** Requests that do many writes, each of them whole, or resume later what they have begun. */
const EXCEPTIONS: readonly { readonly request: RegExp; readonly because: string }[] = [
  { request: /^DELETE \/api\/projects\/\d+\?mode=delete/, because: 'the schedule resumes it; it is answered as begun' },
  { request: /^DELETE \/api\/workspaces\/\d+$/, because: 'the schedule resumes it; it is answered as begun' },
  {
    request: /^DELETE \/api\/people\//,
    because: 'each record that is erased is looked up, and a call that was cut off is repeated',
  },
  { request: /^(POST|PUT) \/api\/notifications$/, because: 'beyond 1,000, each thousand is a write of its own' },
  {
    request: /^POST \/api\/tokens(\/batch)?$/,
    because: 'reports that others record at this moment are looked up again',
  },
  { request: /^POST \/api\/(cron|scheduler)$/, because: 'it runs scheduled tasks as the schedule does' },
  {
    request: /^GET \/(api\/auth\/me)?$/,
    because: 'a proxy or an access token names a user for the first time, who is created before',
  },
];

interface Watched {
  readonly name: string;
  /** What it has appended first, and when (`performance.now()`). */
  appended?: { readonly stream: string; readonly at: number };
}

const requests = new AsyncLocalStorage<Watched>();
const found = new Set<string>();
// What asked is above the libraries that run its statement.
Error.stackTraceLimit = 40;

function check(schemas: readonly string[], { since }: ReadAt): void {
  const request = requests.getStore();
  if (since === undefined || !request?.appended || since < request.appended.at) return;
  if (EXCEPTIONS.some((one) => one.request.test(request.name))) return;
  const at = new Error().stack
    ?.split('\n')
    .filter((line) => /\/(api|commands|queries)\//.test(line))
    .join('\n');
  found.add(
    `${request.name} reads ${schemas.join(', ')} at the head after it has appended to ${request.appended.stream}\n${at}`,
  );
}

const { emit } = Server.prototype;
Server.prototype.emit = function (this: Server, event: string | symbol, ...of: unknown[]): boolean {
  const go = () => emit.apply(this, [event, ...of] as never);
  if (event !== 'request') return go();
  const { method, url } = of[0] as { readonly method: string; readonly url: string };
  return requests.run({ name: `${method} ${url}` }, go);
};

const { append } = Appender.prototype;
Appender.prototype.append = function (...of) {
  const appending = append.apply(this, of);
  const request = requests.getStore();
  const stored = () => {
    if (request) request.appended ??= { stream: of[0], at: performance.now() };
  };
  // Security events are recorded beside the request that shows them. A conflict stores nothing.
  if (!of[0].startsWith('security_events-')) appending.then(stored, () => undefined);
  return appending;
};

const { reachSchemas } = Positions.prototype;
Positions.prototype.reachSchemas = function (...of) {
  check(...of);
  return reachSchemas.apply(this, of);
};

export const mochaHooks = {
  afterAll() {
    const all = [...found];
    found.clear();
    if (all.length > 0) throw new Error(all.join('\n\n'));
  },
};
