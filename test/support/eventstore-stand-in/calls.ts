/** A call of a client that reads: what is written to it, and how it fails. */
import { once } from 'node:events';
import * as grpc from '@grpc/grpc-js';
import type { ReadRequest, ReadResponse } from './protocol.ts';

export type ReadCall = grpc.ServerWritableStream<ReadRequest, ReadResponse>;

export function fail(call: ReadCall, code: number, details: string, metadata = new grpc.Metadata()): void {
  call.emit('error', { code, details, metadata });
}

/** Resolves when the call can take more, or is over. */
export async function write(call: ReadCall, answer: ReadResponse): Promise<void> {
  if (call.cancelled || call.destroyed || call.write(answer)) return;
  const over = new AbortController();
  const ended = () => over.abort();
  call.once('cancelled', ended);
  call.once('close', ended);
  try {
    await once(call, 'drain', { signal: over.signal });
  } catch (error) {
    if (!over.signal.aborted) throw error;
  } finally {
    call.off('cancelled', ended);
    call.off('close', ended);
  }
}
