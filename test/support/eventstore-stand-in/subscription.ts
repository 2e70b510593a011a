/**
 * The stand-in's subscription to $all: catch-up in pages, checkpoints, `caughtUp`, then live with a small queue whose
 * overflow drops the consumer as too slow. For tests only.
 */
import * as grpc from '@grpc/grpc-js';
import { fail, type ReadCall, write } from './calls.ts';
import type { Faults } from './faults.ts';
import type { Memory, StoredEvent } from './memory.ts';
import { caughtUpAnswer, checkpointAnswer, confirmationAnswer, eventAnswer, type ReadRequest } from './protocol.ts';

export interface SubscriptionSettings {
  /** Live events that wait for a consumer before it is dropped. */
  liveQueue: number;
  /** False imitates a server that is too old to say `caughtUp`. */
  saysCaughtUp: boolean;
}

type FilterOptions = ReturnType<NonNullable<ReturnType<ReadRequest['getOptions']>>['getFilter']>;

const PAGE = 32;

function matcherOf(filter: FilterOptions): (event: StoredEvent) => boolean {
  if (!filter) return () => true;
  const byType = filter.getEventType();
  const expression = byType ?? filter.getStreamIdentifier();
  const filtered = (event: StoredEvent) => (byType ? event.type : event.stream);
  const pattern = expression?.getRegex();
  if (pattern) {
    const regex = new RegExp(pattern);
    return (event) => regex.test(filtered(event));
  }
  const prefixes = expression?.getPrefixList() ?? [];
  return (event) => prefixes.some((prefix) => filtered(event).startsWith(prefix));
}

export async function subscribe(
  call: ReadCall,
  memory: Memory,
  faults: Faults,
  settings: SubscriptionSettings,
  from: number,
  filter: FilterOptions,
  id: string,
): Promise<void> {
  const matches = matcherOf(filter);
  const window = filter?.hasMax() ? filter.getMax() : PAGE;
  const interval = filter ? window * Math.max(1, filter.getCheckpointintervalmultiplier()) : Number.POSITIVE_INFINITY;
  let considered = 0;
  let next = from;
  const muted = faults.muted;
  await write(call, confirmationAnswer(id));

  // Sends the history; more may be written meanwhile. No `await` between the last look and going live.
  for (;;) {
    const event = memory.all[next];
    if (!event || call.cancelled) break;
    next++;
    considered++;
    if (matches(event)) await write(call, eventAnswer(event));
    if (considered % interval === 0) await write(call, checkpointAnswer(event.position));
  }
  if (call.cancelled) return;

  let queue: StoredEvent[] = [];
  let wake = () => {};
  let tooSlow = false;
  const stop = memory.onWritten((events) => {
    for (const event of events) {
      if (queue.length >= settings.liveQueue) {
        tooSlow = true;
        stop();
        break;
      }
      queue.push(event);
    }
    wake();
  });
  call.once('cancelled', () => {
    stop();
    wake();
  });
  if (settings.saysCaughtUp) await write(call, caughtUpAnswer());
  while (!call.cancelled) {
    const events = faults.muted === muted ? queue : [];
    queue = [];
    for (const event of events) {
      considered++;
      if (matches(event)) await write(call, eventAnswer(event));
      if (considered % interval === 0) await write(call, checkpointAnswer(event.position));
    }
    if (queue.length > 0) continue;
    if (tooSlow) {
      faults.counts.slowDrops++;
      fail(
        call,
        grpc.status.ABORTED,
        'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
      );
      return;
    }
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}
