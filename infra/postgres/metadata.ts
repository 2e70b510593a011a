/**
 * How metadata is stored: what all events of a caller have in common once, in `log.origins`, and of the rest no value twice.
 * Reading restores the metadata as it was written, byte for byte, so the leaf of the tree (`infra/proof`) covers all of it.
 *
 * The id of an origin follows from its contents. So every append can add the origins of its events without knowing
 * whether they are there, and an id never stands for another origin, whatever a failover lost.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { LoggedEvent, NewEvent } from '../../shared/ports/event-log.ts';

type Meta = NewEvent['meta'];

/** Metadata as columns of `log.events`. Without an origin, `meta` is the whole. */
export interface StoredMetadata {
  /** UUID. */
  readonly origin: string | null;
  readonly number: number | null;
  readonly at: number | null;
  /** The id of the first cause; nearly always the request's, and the direct cause, too. */
  readonly cause: string | null;
  /** Everything else. */
  readonly meta: Meta;
}

export interface PackedMetadata extends Omit<StoredMetadata, 'meta'> {
  /** JSON; undefined: the metadata is stored as it is. */
  readonly meta: string | undefined;
  /** The origin, JSON; undefined if there is none. */
  readonly shared: string | undefined;
}

/** The order of keys (`shared/events/metadata.ts`); other metadata, as of another program, is stored as it is. */
const KEYS =
  /^version,number,at,(rest,)?tenant,workspace,actor,(agent,)?(via,)?ip,userAgent,requestId,correlationId,causationId(,traceparent)?$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const WHOLE: PackedMetadata = {
  origin: null,
  number: null,
  at: null,
  cause: null,
  meta: undefined,
  shared: undefined,
};

export function packed(whole: Meta): PackedMetadata {
  const { version, number, at, rest, requestId, correlationId, causationId, traceparent, ...caller } = whole;
  if (!(Number.isSafeInteger(number) && Number.isSafeInteger(at) && KEYS.test(Object.keys(whole).join()))) return WHOLE;
  const cause = typeof correlationId === 'string' && UUID.test(correlationId) ? correlationId : null;
  const isCause = (id: unknown) => id === cause && cause !== null;
  const meta = JSON.stringify({
    rest,
    requestId: isCause(requestId) ? undefined : requestId,
    correlationId: cause === null ? correlationId : undefined,
    causationId: isCause(causationId) ? undefined : causationId,
    traceparent,
  });
  const shared = JSON.stringify({ version, ...caller });
  const origin = hash('sha256', shared).slice(0, 32);
  return { origin, number: number as number, at: at as number, cause, meta, shared };
}

/** The common part of the metadata of several events. */
interface Origin {
  readonly version: unknown;
  readonly caller: Meta;
}

function restored({ number, at, cause, meta }: StoredMetadata, { version, caller }: Origin): Meta {
  const { rest, requestId = cause, causationId = cause, traceparent } = meta;
  // Not a default: a changed column must change the metadata, or `verify` would not find it.
  const correlationId = cause ?? meta.correlationId ?? null;
  return {
    version,
    number,
    at,
    ...(rest !== undefined && { rest }),
    ...caller,
    requestId,
    correlationId,
    causationId,
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** Limit of the origins in memory, bytes of JSON. */
const KEPT_BYTES = 8_000_000;

export interface StoredEvent extends Omit<LoggedEvent, 'meta'>, StoredMetadata {}

type Query = (text: string, values: unknown[]) => Promise<{ readonly rows: readonly unknown[] }>;

export class Origins {
  readonly #query: Query;
  readonly #kept = new LRUCache<string, Origin>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (origin) => JSON.stringify(origin).length,
  });

  constructor(query: Query) {
    this.#query = query;
  }

  /**
   * Events with their whole metadata. An origin that was removed behind the back of the service is missing in it: the event
   * then no longer matches its leaf.
   */
  async restore(events: readonly StoredEvent[]): Promise<LoggedEvent[]> {
    const found = await this.#find(events);
    return events.map((event) => {
      const { position, id, stream, revision, type, data, origin } = event;
      const shared = origin === null ? undefined : (found.get(origin) ?? { version: undefined, caller: {} });
      return { position, id, stream, revision, type, data, meta: shared ? restored(event, shared) : event.meta };
    });
  }

  async #find(events: readonly StoredEvent[]): Promise<ReadonlyMap<string, Origin>> {
    const found = new Map<string, Origin>();
    const unknown = new Set<string>();
    for (const { origin } of events) {
      if (origin === null || found.has(origin) || unknown.has(origin)) continue;
      const kept = this.#kept.get(origin);
      if (kept) found.set(origin, kept);
      else unknown.add(origin);
    }
    if (unknown.size === 0) return found;
    const { rows } = await this.#query('SELECT id, meta FROM log.origins WHERE id = ANY($1::uuid[])', [[...unknown]]);
    for (const { id, meta } of rows as readonly { id: string; meta: Meta }[]) {
      const { version, ...caller } = meta;
      found.set(id, { version, caller });
      this.#kept.set(id, { version, caller });
    }
    return found;
  }
}
