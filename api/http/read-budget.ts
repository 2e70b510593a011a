/**
 * What the reads of one caller may cost others. Large responses have a budget in bytes, and only some of a caller's
 * reads run at once, so that it cannot take all connections to the database. Cached responses are not counted, and
 * routes that give the caller small responses are never refused.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/bounded.ts';
import { AppError } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import type { RequestContext } from './context.ts';
import type { Route } from './route.ts';

/** Bytes of computed responses per caller and minute, in each process. */
export const READ_BYTES = 120_000_000;
/** Responses up to this size, bytes, are not counted. */
const SMALL = 65_536;
/** Reads of a caller that run at once; others wait. */
const AT_ONCE = 4;
/** A caller that has recently read this many bytes gets its large responses one after the other. */
const MUCH = 4_000_000;
/** Reads of a caller that wait. */
const MAX_WAITING = 1_000;
/** Callers that are remembered. */
const MAX_CALLERS = 10_000;
const MINUTE_MS = 60_000;

interface Lane {
  running: number;
  readonly waiting: (() => void)[];
}

interface Account {
  /** Bytes that count at `at`; they are paid off evenly. */
  spent: number;
  /** Unix ms. */
  at: number;
  /** Paths of the routes that have given the caller large responses. */
  readonly large: Set<string>;
  /** The reads of these routes, and the others. */
  readonly lanes: { readonly large: Lane; readonly small: Lane };
}

/** The caller, whichever of its keys or sessions it uses. */
const callerOf = ({ tenant, workspace, kind, id, agentId }: Identity): string =>
  `${tenant}:${workspace}:${agentId === null ? `${kind} ${id}` : `agent ${agentId}`}`;

const newAccount = (at: number): Account => ({
  spent: 0,
  at,
  large: new Set(),
  lanes: { large: { running: 0, waiting: [] }, small: { running: 0, waiting: [] } },
});

/** Resolves when less than `most` reads of the lane are running. @throws AppError 429 when too many wait */
async function enter(lane: Lane, most: number): Promise<void> {
  if (lane.running < most && lane.waiting.length === 0) {
    lane.running++;
    return;
  }
  if (lane.waiting.length >= MAX_WAITING)
    throw new AppError(429, `More than ${MAX_WAITING} of your reads are waiting; wait for their responses first.`, {
      headers: { 'Retry-After': '1' },
    });
  await new Promise<void>((resolve) => {
    lane.waiting.push(resolve);
  });
}

function leave(lane: Lane, most: number): void {
  lane.running--;
  while (lane.running < most && lane.waiting.length > 0) {
    lane.running++;
    lane.waiting.shift()?.();
  }
}

export interface ReadBudget {
  /**
   * Computes a response when it is the caller's turn.
   *
   * @param bytesOf size of the result
   * @throws AppError 429 when the budget is used up, or too many reads of the caller wait
   */
  run<T>(
    context: RequestContext,
    { identity, route }: { readonly identity: Identity; readonly route: Pick<Route, 'path'> },
    compute: () => Promise<T>,
    bytesOf: (result: T) => number,
  ): Promise<T>;
}

/**
 * @param parts.now Unix ms
 * @param parts.isOff true: no budget
 * @param refused called on every refusal
 */
export function createReadBudget(
  parts: { readonly now: () => number; readonly isOff: boolean },
  refused: (context: RequestContext) => void,
): ReadBudget {
  const accounts = new LRUCache<string, Account>(atMost(MAX_CALLERS));

  function accountOf(identity: Identity): Account {
    const caller = callerOf(identity);
    const known = accounts.get(caller);
    if (known) return known;
    const account = newAccount(parts.now());
    accounts.set(caller, account);
    return account;
  }

  function spentBy(account: Account): number {
    const now = parts.now();
    const paid = (Math.max(0, now - account.at) / MINUTE_MS) * READ_BYTES;
    account.spent = Math.max(0, account.spent - paid);
    account.at = now;
    return account.spent;
  }

  function check(context: RequestContext, account: Account, path: string): void {
    if (parts.isOff || !account.large.has(path)) return;
    const over = spentBy(account) - READ_BYTES;
    if (over < 0) return;
    refused(context);
    const seconds = Math.max(1, Math.ceil((over / READ_BYTES) * (MINUTE_MS / 1_000)));
    throw new AppError(
      429,
      `Your reads have returned more than ${READ_BYTES / 1_000_000} MB within a minute. Try again in ${seconds} s, and ask for less: use filters or a smaller limit.`,
      { headers: { 'Retry-After': String(seconds) } },
    );
  }

  return {
    async run(context, { identity, route }, compute, bytesOf) {
      const account = accountOf(identity);
      check(context, account, route.path);
      const isLarge = account.large.has(route.path);
      const lane = isLarge ? account.lanes.large : account.lanes.small;
      const most = () => (isLarge && spentBy(account) > MUCH ? 1 : AT_ONCE);
      await enter(lane, most());
      try {
        // Meanwhile, other reads may have used up the budget, and the client may have left.
        check(context, account, route.path);
        if (context.res.destroyed) throw new AppError(400, 'The connection was closed before the response was ready.');
        const result = await compute();
        const bytes = bytesOf(result);
        if (bytes > SMALL) {
          account.spent = spentBy(account) + bytes;
          account.large.add(route.path);
        }
        return result;
      } finally {
        leave(lane, most());
      }
    },
  };
}
