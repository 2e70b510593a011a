/**
 * A caller that reads as much as it can over several connections, in a process of its own: on the main thread of the
 * test it would delay what the test measures.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';

const MODULE = fileURLToPath(import.meta.url);

/** A path to GET, or a call of an MCP tool. */
export type Asked = string | { readonly tool: string; readonly arguments: object };

interface Options {
  readonly url: string;
  readonly key: string;
  /** Each connection begins at another place, and begins again at the end. */
  readonly reads: readonly Asked[];
  readonly connections: number;
}

export interface ReadsReport {
  /** Number of responses by path without ids and query, and status. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly bytes: number;
}

/** Starts to read. `stop` gives the report. */
export function startReads(options: Options): { stop(): Promise<ReadsReport> } {
  const child = fork(MODULE, [], { execArgv: [] });
  child.send(options);
  return {
    async stop() {
      const reported = once(child, 'message');
      child.send('stop');
      const [report] = await reported;
      return report as ReadsReport;
    },
  };
}

/** How long a stream is read, milliseconds. */
const STREAMED_MS = 500;

interface Received {
  readonly name: string;
  readonly status: number;
  readonly bytes: number;
}

function read(base: string, asked: Asked, headers: Record<string, string>, agent: Agent): Promise<Received> {
  const path = typeof asked === 'string' ? asked : '/mcp';
  const name = typeof asked === 'string' ? path.replace(/\?.*/, '').replaceAll(/\d+/g, '{id}') : `tool ${asked.tool}`;
  const body =
    typeof asked === 'string'
      ? undefined
      : JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: asked.tool, arguments: asked.arguments },
        });
  const more = body !== undefined && {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  return new Promise((resolve, reject) => {
    request(base + path, { method: body ? 'POST' : 'GET', headers: { ...headers, ...more }, agent }, (response) => {
      let bytes = 0;
      response
        .on('data', (chunk: Buffer) => {
          bytes += chunk.length;
        })
        .on('end', () => resolve({ name, status: response.statusCode as number, bytes }))
        .on('error', reject);
      // A stream does not end by itself.
      if (response.headers['content-type'] === 'text/event-stream')
        setTimeout(() => {
          resolve({ name, status: response.statusCode as number, bytes });
          response.removeAllListeners('error').on('error', () => undefined);
          response.destroy();
        }, STREAMED_MS);
    })
      .on('error', reject)
      .end(body);
  });
}

async function main({ url, key, reads, connections }: Options): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const counts: Record<string, Record<string, number>> = {};
  let bytes = 0;
  let running = true;
  process.once('message', () => {
    running = false;
  });
  const connection = async (first: number) => {
    for (let n = first; running; n++) {
      // With no-cache, a response is computed although it is kept.
      const headers = { 'x-api-key': key, ...(n % 2 === 0 && { 'cache-control': 'no-cache' }) };
      const received = await read(url, reads[n % reads.length] as Asked, headers, agent);
      bytes += received.bytes;
      counts[received.name] ??= {};
      const statuses = counts[received.name] as Record<string, number>;
      statuses[received.status] = (statuses[received.status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, n) => connection(n * 7)));
  process.send?.({ counts, bytes });
  process.disconnect();
}

if (process.argv[1] === MODULE) {
  process.once('message', (options: Options) => {
    main(options).catch((error: unknown) => {
      console.error(error);
      process.exit(1);
    });
  });
}
