/**
 * `signalbox mcp`: the Model Context Protocol on stdin and stdout, for hosts that start a command. Each message becomes
 * a request to `/mcp` of a service, and its response is written on arrival. The service keeps no session, so this
 * process has none either, and it continues after a restart of the service.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { RUN_IN_PROGRESS } from '../../shared/errors.ts';

/** Maximum number of bytes in a message on stdin; the service accepts no larger requests. */
const MAX_MESSAGE = 2_097_152;
/** Requests in flight; further messages wait on stdin. */
const MAX_RUNNING = 16;
/** How long a request is retried while the service is unreachable, milliseconds. */
const AWAY_MS = 60_000;
/** Time-out of one request, milliseconds. */
const REQUEST_MS = 60_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

interface Options {
  readonly url: string;
  readonly key?: string;
  readonly agent?: string;
}

/** The fields of a JSON-RPC message that are read here. */
interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly name?: unknown;
    readonly uri?: unknown;
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
}

export function addMcp(program: Command): void {
  program
    .command('mcp')
    .description('connect a running service with a host of the Model Context Protocol that starts commands')
    .requiredOption('--url <url>', 'address of the service, such as http://127.0.0.1:3000')
    .option('--key <key>', 'API key; better in the environment as SIGNALBOX_KEY, which other users cannot read')
    .option('--agent <name>', 'the agent that the caller speaks for; an agent’s own key speaks for it anyway')
    .action(async (options: Options) => {
      const key = options.key ?? process.env.SIGNALBOX_KEY;
      if (!key) throw new Error('an API key is missing: set SIGNALBOX_KEY, or use --key');
      if (!URL.canParse(options.url) || !/^https?:$/.test(new URL(options.url).protocol))
        throw new Error(`--url must be an http or https URL, such as http://127.0.0.1:3000, not ${options.url}`);
      // After a host has exited, no responses are read.
      process.stdout.on('error', () => process.exit(0));
      await bridge({
        url: mcpUrlOf(options.url),
        headers: {
          'x-api-key': key,
          ...(options.agent !== undefined && { 'x-agent-name': encodeURIComponent(options.agent) }),
        },
        input: process.stdin,
        write: (line) => {
          process.stdout.write(line);
        },
      });
    });
}

/** Below the path of the service's URL, which has one behind some proxies. */
export function mcpUrlOf(service: string): URL {
  const url = new URL(service);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/mcp`;
  url.search = '';
  url.hash = '';
  return url;
}

interface Bridge {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly input: AsyncIterable<Buffer | string>;
  readonly write: (line: string) => void;
}

/** Resolves when stdin has ended and every request has its response. @throws Error for a message that is too large */
async function bridge({ url, headers, input, write }: Bridge): Promise<void> {
  const running = new Set<Promise<void>>();
  for await (const line of linesOf(input)) {
    if (line.trim() === '') continue;
    const one = answerOf(url, headers, line).then((response) => {
      if (response !== undefined) write(`${response}\n`);
    });
    running.add(one);
    one.finally(() => running.delete(one)).catch(() => undefined);
    if (running.size >= MAX_RUNNING) await Promise.race(running);
  }
  await Promise.all(running);
}

async function* linesOf(input: AsyncIterable<Buffer | string>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of input) {
    rest = Buffer.concat([rest, Buffer.from(chunk)]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      yield rest.subarray(0, end).toString('utf8');
      rest = rest.subarray(end + 1);
    }
    if (rest.length > MAX_MESSAGE) throw new Error(`a message on stdin is longer than ${MAX_MESSAGE} bytes`);
  }
  if (rest.length > 0) yield rest.toString('utf8');
}

/** A JSON-RPC error for a message; undefined for a notification, which has no response. */
const errorFor = (id: Message['id'] | null, message: string, code = -32_603): string | undefined =>
  id === undefined ? undefined : JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });

/** The headers that the revision 2026-07-28 repeats from the message. */
function headersOf({ method, params }: Message): Record<string, string> {
  const version = params?._meta?.['io.modelcontextprotocol/protocolVersion'];
  const name = params?.name ?? params?.uri;
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(method === 'tools/call' && { 'idempotency-key': randomUUID() }),
    ...(typeof version === 'string' && {
      'mcp-protocol-version': version,
      ...(method !== undefined && { 'mcp-method': method }),
      ...(typeof name === 'string' && { 'mcp-name': encodedName(name) }),
    }),
  };
}

/** A header contains only visible ASCII; other names are sent as Base64, as the protocol requires. */
const encodedName = (name: string): string =>
  /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(name) ? name : `=?base64?${Buffer.from(name).toString('base64')}?=`;

/** The line in response to a message; undefined if there is none. */
async function answerOf(url: URL, own: Readonly<Record<string, string>>, line: string): Promise<string | undefined> {
  let message: Message;
  try {
    message = JSON.parse(line) as Message;
  } catch {
    return errorFor(null, 'The message is not valid JSON.', -32_700);
  }
  // Revisions since 2025-06-18 have no batches.
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    return errorFor(null, 'The message must be one JSON-RPC message, an object.', -32_600);
  const { id } = message;
  // The headers are the same for each attempt, so that a call is executed only once.
  const headers = { ...own, ...headersOf(message) };
  const until = Date.now() + AWAY_MS;
  for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
    try {
      // biome-ignore lint/style/noRestrictedGlobals: connections are kept for further messages; redirects are refused below.
      const response = await fetch(url, {
        method: 'POST',
        headers,
        body: line,
        redirect: 'manual',
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      const text = await response.text();
      const target = response.headers.get('location');
      if (target !== null && response.status >= 300 && response.status < 400)
        return errorFor(id, `${url} redirects to ${shown(target, url)}, which is not followed; check --url.`);
      // The service is just starting, or an earlier attempt is still running.
      const early = response.status === 503 || isUnderWay(text);
      if (!early || Date.now() > until) return answerFrom(id, response, text);
    } catch (error) {
      if (Date.now() > until)
        return errorFor(id, `The service at ${url.origin} cannot be reached (${causeOf(error)}).`);
    }
    await pause(wait);
  }
}

/** The response as one line. Service errors outside the protocol, such as a wrong key, become protocol errors. */
function answerFrom(id: Message['id'], { status }: Response, text: string): string | undefined {
  if (id === undefined) return undefined;
  try {
    const body = JSON.parse(text) as { readonly jsonrpc?: unknown; readonly error?: unknown };
    if (body.jsonrpc === '2.0') return JSON.stringify(body);
    if (typeof body.error === 'string') return errorFor(id, `${body.error} (HTTP ${status})`);
  } catch {
    // Not from the service.
  }
  return errorFor(id, `The server responded with HTTP ${status} and no message of the protocol; check --url.`);
}

/** Whether a tool call was refused because an earlier attempt is still running, or was when its process was killed. */
function isUnderWay(text: string): boolean {
  if (!text.includes(RUN_IN_PROGRESS)) return false;
  try {
    const { result } = JSON.parse(text) as {
      readonly result?: { readonly isError?: boolean; readonly structuredContent?: { readonly code?: unknown } };
    };
    return result?.isError === true && result.structuredContent?.code === RUN_IN_PROGRESS;
  } catch {
    return false;
  }
}

/** The target of a redirect without its query, user and password, which may be secret. */
function shown(target: string, url: URL): string {
  if (!URL.canParse(target, url.href)) return target.split('?', 1)[0] as string;
  const { protocol, host, pathname } = new URL(target, url);
  return `${protocol}//${host}${pathname}`;
}

const causeOf = (error: unknown): string => {
  const { name, cause } = error as { readonly name?: string; readonly cause?: { readonly code?: string } };
  return cause?.code ?? name ?? 'no connection';
};
