/** The stand-in's two ways to append: `BatchAppend` (one stream for all appends of a client) and `Append`. For tests only. */
import * as grpc from '@grpc/grpc-js';
import type { Faults } from './faults.ts';
import type { Expected, Memory, Outcome, Proposed } from './memory.ts';
import {
  type AppendRequest,
  type AppendResponse,
  appendConflict,
  appendSuccess,
  type BatchRequest,
  type BatchResponse,
  batchRefusal,
  batchSuccess,
  identifierOf,
  type streamsMessages,
  textOf,
} from './protocol.ts';

type ProposedMessage =
  | InstanceType<typeof streamsMessages.BatchAppendReq.ProposedMessage>
  | InstanceType<typeof streamsMessages.AppendReq.ProposedMessage>;

function proposedOf(message: ProposedMessage): Proposed {
  const map = message.getMetadataMap();
  return {
    id: message.getId()?.getString() ?? '',
    type: map.get('type') ?? '',
    contentType: map.get('content-type') ?? 'application/octet-stream',
    data: message.getData_asU8(),
    meta: message.getCustomMetadata_asU8(),
  };
}

interface Gathering {
  readonly stream: string;
  readonly expected: Expected;
  readonly events: Proposed[];
}

interface Conditions {
  hasAny(): boolean;
  hasNoStream(): boolean;
  hasStreamExists(): boolean;
}

function expectedOf(options: Conditions, position: unknown): Expected {
  if (options.hasAny()) return 'any';
  if (options.hasNoStream()) return 'none';
  return options.hasStreamExists() ? 'exists' : Number(position);
}

/** Applies an append unless a fault says otherwise, and answers through `answer` unless the answer is to be lost. */
function apply(memory: Memory, faults: Faults, append: Gathering, answer: (outcome: Outcome) => void): void {
  const fault = faults.nextAppend();
  if (fault.notReady) {
    faults.counts.refusals++;
    answer({ refusal: { kind: 'not ready' } });
    return;
  }
  const outcome = memory.append(append.stream, append.events, append.expected);
  if (fault.lose === 'silence') return;
  if (fault.lose === 'connection') {
    faults.dropConnections();
    return;
  }
  if (fault.delayMs > 0) setTimeout(answer, fault.delayMs, outcome).unref();
  else answer(outcome);
}

export function batchAppend(memory: Memory, faults: Faults) {
  return (call: grpc.ServerDuplexStream<BatchRequest, BatchResponse>): void => {
    const gathering = new Map<string, Gathering>();
    call.on('data', (request: BatchRequest) => {
      const id = request.getCorrelationId();
      const key = id?.getString() ?? '';
      const options = request.getOptions();
      if (options) {
        gathering.set(key, {
          stream: textOf(options.getStreamIdentifier()?.getStreamName() ?? ''),
          expected: expectedOf(options, options.getStreamPosition()),
          events: [],
        });
      }
      const append = gathering.get(key);
      if (!append) return;
      for (const message of request.getProposedMessagesList()) append.events.push(proposedOf(message));
      if (!request.getIsFinal()) return;
      gathering.delete(key);
      apply(memory, faults, append, (outcome) => {
        if (call.cancelled || call.destroyed) return;
        const answer =
          'written' in outcome ? batchSuccess(outcome.written) : batchRefusal(outcome.refusal, append.stream);
        answer.setCorrelationId(id);
        answer.setStreamIdentifier(identifierOf(append.stream));
        call.write(answer);
      });
    });
    call.on('end', () => call.end());
    call.on('error', (error) => faults.note(error));
  };
}

export function append(memory: Memory, faults: Faults) {
  return (
    call: grpc.ServerReadableStream<AppendRequest, AppendResponse>,
    respond: grpc.sendUnaryData<AppendResponse>,
  ): void => {
    let gathering: Gathering | undefined;
    call.on('data', (request: AppendRequest) => {
      const options = request.getOptions();
      if (options) {
        gathering = {
          stream: textOf(options.getStreamIdentifier()?.getStreamName() ?? ''),
          expected: expectedOf(options, options.getRevision()),
          events: [],
        };
      }
      const message = request.getProposedMessage();
      if (message) gathering?.events.push(proposedOf(message));
    });
    call.on('error', (error) => faults.note(error));
    call.on('end', () => {
      const gathered = gathering;
      if (!gathered) {
        respond({ code: grpc.status.INVALID_ARGUMENT, details: 'no options' });
        return;
      }
      apply(memory, faults, gathered, (outcome) => {
        if ('written' in outcome) respond(null, appendSuccess(outcome.written));
        else if (outcome.refusal.kind === 'conflict') respond(null, appendConflict(outcome.refusal));
        else respond(refusalStatus(outcome.refusal.kind, gathered.stream));
      });
    });
  };
}

function refusalStatus(kind: 'deleted' | 'too large' | 'not ready', stream: string): Partial<grpc.StatusObject> {
  const metadata = new grpc.Metadata();
  if (kind === 'not ready') return { code: grpc.status.UNAVAILABLE, details: 'Server Is Not Ready' };
  metadata.set('stream-name', stream);
  if (kind === 'deleted') {
    metadata.set('exception', 'stream-deleted');
    return { code: grpc.status.FAILED_PRECONDITION, details: `Event stream '${stream}' is deleted.`, metadata };
  }
  metadata.set('exception', 'maximum-append-size-exceeded');
  metadata.set('maximum-append-size', '1048576');
  return { code: grpc.status.INVALID_ARGUMENT, details: 'Maximum Append Size Exceeded.', metadata };
}
