/** An agent runner that keeps the rule of docs/agent-runner.md: a key that it has seen is answered as it was then. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { listen } from './listen.ts';

/** What was sent with one key. */
export interface Handed {
  readonly key: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>> & { readonly run_id: number; readonly step_index: number };
}

export interface Reaction {
  readonly status?: number;
  /** JSON, or text as it is; nothing: an empty body. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called once the answer is on its way. */
  readonly sent?: (() => void) | undefined;
  /** False: the step was not taken, and the same key may be answered otherwise next time. */
  readonly taken?: boolean;
}

export interface TestRunner {
  readonly url: string;
  /** Every request, in the order in which they came. */
  readonly requests: readonly Handed[];
  /** How often a step was really taken, by key. */
  readonly taken: ReadonlyMap<string, number>;
  /** Says what is answered from now on; `undefined` for no answer until the caller gives up. */
  react(how: (handed: Handed) => Reaction | undefined | Promise<Reaction | undefined>): void;
  /** Forgets all requests. */
  forget(): void;
  close(): Promise<void>;
}

/** Settings of a service that hands its work to this runner, and waits for it for 300 ms. */
export const runnerSettings = ({ url }: Pick<TestRunner, 'url'>): Record<string, string> => ({
  RUNNER_URL: url,
  RUNNER_TOKEN: 'runner-token',
  RUNNER_TIMEOUT_MS: '300',
});

export async function startRunner(): Promise<TestRunner> {
  const requests: Handed[] = [];
  const taken = new Map<string, number>();
  const answers = new Map<string, Reaction>();
  const open = new Set<ServerResponse>();
  let react: Parameters<TestRunner['react']>[0] = () => ({ body: { status: 'accepted' } });

  async function answer(handed: Handed): Promise<Reaction | undefined> {
    const known = answers.get(handed.key);
    if (known) return known;
    const reaction = await react(handed);
    const isTaken = reaction?.taken ?? (reaction !== undefined && (reaction.status ?? 200) < 300);
    if (reaction && isTaken) {
      taken.set(handed.key, (taken.get(handed.key) ?? 0) + 1);
      answers.set(handed.key, { ...reaction, sent: undefined });
    }
    return reaction;
  }

  const server = await listen((req, res) => {
    open.add(res);
    res.on('close', () => open.delete(res));
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Handed['body'];
      const handed = { key: String(req.headers['idempotency-key']), headers: req.headers, body };
      requests.push(handed);
      answer(handed).then(
        (reaction) => {
          if (!reaction) return;
          const { status = 200, body: said, headers = {} } = reaction;
          res.on('finish', () => reaction.sent?.());
          res.writeHead(status, { 'content-type': 'application/json', ...headers });
          res.end(said === undefined ? '' : typeof said === 'string' ? said : JSON.stringify(said));
        },
        (error: unknown) => res.destroy(error as Error),
      );
    });
  });
  return {
    url: `${server.url}/steps`,
    requests,
    taken,
    react(how) {
      react = how;
    },
    forget() {
      requests.length = 0;
      taken.clear();
      answers.clear();
    },
    async close() {
      for (const res of open) res.destroy();
      await server.close();
    },
  };
}
