/** The stand-in's `Read`: streams, $all, and hands subscriptions on. For tests only. */
import { randomUUID } from 'node:crypto';
import * as grpc from '@grpc/grpc-js';
import { fail, type ReadCall, write } from './calls.ts';
import type { Faults } from './faults.ts';
import type { Memory, StoredEvent } from './memory.ts';
import { eventAnswer, notFoundAnswer, type ReadRequest, textOf } from './protocol.ts';
import { type SubscriptionSettings, subscribe } from './subscription.ts';

export function read(memory: Memory, faults: Faults, settings: SubscriptionSettings) {
  return (call: ReadCall): void => {
    call.on('error', (error) => faults.note(error));
    const refusal = refusalOf(call.request, faults);
    if (refusal) fail(call, ...refusal);
    else answer(call, memory, faults, settings).catch((error) => faults.note(error));
  };
}

function refusalOf(request: ReadRequest, faults: Faults): [code: number, details: string] | undefined {
  const status = faults.nextReadStatus();
  if (status !== undefined) return [status, 'refused on request'];
  if (faults.notReady) {
    faults.counts.refusals++;
    return [grpc.status.UNAVAILABLE, 'Server Is Not Ready'];
  }
  const options = request.getOptions();
  if (!options?.hasStream() && !options?.hasAll()) return [grpc.status.INVALID_ARGUMENT, 'neither a stream nor $all'];
  if (options.hasCount() && Number(options.getCount()) === 0) return [grpc.status.INVALID_ARGUMENT, 'count is 0'];
  return undefined;
}

async function answer(call: ReadCall, memory: Memory, faults: Faults, settings: SubscriptionSettings): Promise<void> {
  const options = call.request.getOptions();
  const backwards = options?.getReadDirection() === 1;
  const count = Number(options?.getCount());
  const stream = options?.getStream();
  if (stream) {
    const name = textOf(stream.getStreamIdentifier()?.getStreamName() ?? '');
    const events = memory.streams.get(name);
    if (memory.isDeleted(name)) {
      failDeleted(call, name);
    } else if (!events) {
      call.write(notFoundAnswer(name));
      call.end();
    } else {
      const from = stream.hasRevision() ? Number(stream.getRevision()) : stream.hasEnd() ? events.length - 1 : 0;
      await send(call, events, backwards ? Math.min(from, events.length - 1) : from, backwards, count);
    }
    return;
  }
  const all = options?.getAll();
  const position = all?.hasPosition() ? Number(all.getPosition()?.getCommitPosition()) : undefined;
  // Behind its last event a real server finds nothing, in silence; elsewhere it stumbles over what is no event.
  const beyond = position !== undefined && !backwards && position > (memory.all.at(-1)?.position ?? 0);
  const at = position === undefined ? undefined : beyond ? memory.all.length : memory.indexAt(position);
  if (position !== undefined && at === undefined) {
    const subscribed = options?.hasSubscription();
    fail(
      call,
      grpc.status.UNKNOWN,
      subscribed ? 'Exception was thrown by handler.' : 'Unexpected ReadAllResult: Error',
    );
    return;
  }
  const start = at ?? (all?.hasEnd() ? memory.all.length : 0);
  if (options?.hasSubscription()) {
    // A subscription begins behind the position; a read begins at it forwards and before it backwards.
    const next = at === undefined || beyond ? start : at + 1;
    faults.counts.subscriptions++;
    await subscribe(call, memory, faults, settings, next, options.getFilter(), randomUUID());
    faults.counts.subscriptions--;
  } else {
    await send(call, memory.all, backwards ? start - 1 : start, backwards, count);
  }
}

function failDeleted(call: ReadCall, stream: string): void {
  const metadata = new grpc.Metadata();
  metadata.set('exception', 'stream-deleted');
  metadata.set('stream-name', stream);
  fail(call, grpc.status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, metadata);
}

/** Sends up to `count` events from `index` on, no faster than the reader takes them. */
async function send(
  call: ReadCall,
  events: readonly StoredEvent[],
  index: number,
  backwards: boolean,
  count: number,
): Promise<void> {
  let next = index;
  for (let sent = 0; sent < count && !call.cancelled; sent++) {
    const event = events[next];
    if (!event) break;
    next += backwards ? -1 : 1;
    await write(call, eventAnswer(event));
  }
  call.end();
}
