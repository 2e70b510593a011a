/** Bounds of the live stream, per process. */
import { AppError } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import { networkOf } from '../http/limits.ts';

export const STREAM_LIMITS = {
  /** Open streams. */
  clients: 5_000,
  /** Open streams of one user, or of one agent. */
  perCaller: 20,
  /** Open streams from one address with the global key, which several callers may share. */
  perAddress: 200,
  /** Bytes that may wait in a client's connection before it is fed from the log instead of live. */
  clientBytes: 256_000,
  /** Bytes of live frames waiting in connections; a frame that waits in several counts once. */
  liveBytes: 32_000_000,
  /** Bytes held by all streams that are catching up. */
  catchUpBytes: 32_000_000,
  /** Bytes per page; a single larger event is a page of its own. */
  pageBytes: 256_000,
  /** Pages read at the same time; kept low because requests need the database too. */
  readers: 4,
  /** A client that reads nothing for this long while bytes are waiting is cut off, milliseconds. */
  stallMs: 30_000,
};
export type StreamLimits = typeof STREAM_LIMITS;

/** Streams that are counted together, and the limit for them. */
export interface Owner {
  readonly name: string;
  readonly limit: number;
}

export function ownerOf(identity: Identity, ip: string, limits: StreamLimits = STREAM_LIMITS): Owner {
  if (identity.kind === 'global-key') return { name: `address ${networkOf(ip)}`, limit: limits.perAddress };
  const name = identity.kind === 'agent-key' ? `agent ${identity.agentId}` : `user ${identity.id}`;
  return { name, limit: limits.perCaller };
}

/** Open streams by owner. */
export function createTurnstile(limits: Pick<StreamLimits, 'clients'>) {
  const open = new Map<string, number>();
  let all = 0;
  return {
    /**
     * Counts a stream in. Returns a function that counts it out.
     *
     * @throws AppError 429, 503
     */
    enter({ name, limit }: Owner): () => void {
      if (all >= limits.clients) {
        throw new AppError(503, `This process already serves ${limits.clients} event streams; try again later.`, {
          headers: { 'Retry-After': '10' },
        });
      }
      const mine = open.get(name) ?? 0;
      if (mine >= limit) {
        throw new AppError(429, `You already have ${limit} event streams open, the maximum; close one and try again.`, {
          code: 'TOO_MANY_STREAMS',
          headers: { 'Retry-After': '10' },
        });
      }
      open.set(name, mine + 1);
      all++;
      let inside = true;
      return () => {
        if (!inside) return;
        inside = false;
        all--;
        const remaining = (open.get(name) ?? 1) - 1;
        if (remaining > 0) open.set(name, remaining);
        else open.delete(name);
      };
    },
  };
}
