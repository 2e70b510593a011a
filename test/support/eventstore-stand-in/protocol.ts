/**
 * The EventStoreDB protocol as the client's package ships it, and the messages that the stand-in answers with.
 * For tests only.
 */
import gossipMessages from '@eventstore/db-client/generated/gossip_pb.js';
import serverFeatures from '@eventstore/db-client/generated/serverfeatures_pb.js';
import sharedMessages from '@eventstore/db-client/generated/shared_pb.js';
import statusMessages from '@eventstore/db-client/generated/status_pb.js';
import streamsMessages from '@eventstore/db-client/generated/streams_pb.js';
import googleAny from 'google-protobuf/google/protobuf/any_pb.js';
import googleEmpty from 'google-protobuf/google/protobuf/empty_pb.js';
import type { Refusal, StoredEvent, Written } from './memory.ts';

export { default as gossipService } from '@eventstore/db-client/generated/gossip_grpc_pb.js';
export { default as featuresService } from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
export { default as streamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
export { sharedMessages, streamsMessages };

const { AppendResp, BatchAppendResp, ReadResp } = streamsMessages;
const { AllStreamPosition, Empty, MaximumAppendSizeExceeded, StreamDeleted, StreamIdentifier, UUID } = sharedMessages;
const { WrongExpectedVersion } = sharedMessages;

export type BatchRequest = InstanceType<typeof streamsMessages.BatchAppendReq>;
export type BatchResponse = InstanceType<typeof BatchAppendResp>;
export type AppendRequest = InstanceType<typeof streamsMessages.AppendReq>;
export type AppendResponse = InstanceType<typeof AppendResp>;
export type ReadRequest = InstanceType<typeof streamsMessages.ReadReq>;
export type ReadResponse = InstanceType<typeof ReadResp>;

export const textOf = (bytes: Uint8Array | string): string =>
  typeof bytes === 'string' ? Buffer.from(bytes, 'base64').toString('utf8') : Buffer.from(bytes).toString('utf8');

export function identifierOf(stream: string): InstanceType<typeof StreamIdentifier> {
  return new StreamIdentifier().setStreamName(Buffer.from(stream).toString('base64'));
}

/** What the server says of itself: without `BatchAppend` in it the client takes the slow call. */
export function supportedMethods(): InstanceType<typeof serverFeatures.SupportedMethods> {
  const streams = 'event_store.client.streams.streams';
  return new serverFeatures.SupportedMethods()
    .setEventStoreServerVersion('23.10.8')
    .setMethodsList(
      ['append', 'batchappend', 'read'].map((method) =>
        new serverFeatures.SupportedMethod().setServiceName(streams).setMethodName(method),
      ),
    );
}

/** What a node says of its cluster: itself alone, as its leader or without one. */
export function clusterOf(port: number, hasLeader: boolean): InstanceType<typeof gossipMessages.ClusterInfo> {
  const { ClusterInfo, EndPoint, MemberInfo } = gossipMessages;
  const { LEADER, UNKNOWN } = MemberInfo.VNodeState;
  const member = new MemberInfo()
    .setInstanceId(new UUID().setString('00000000-0000-4000-8000-000000000000'))
    .setTimeStamp('0')
    .setState(hasLeader ? LEADER : UNKNOWN)
    .setIsAlive(true)
    .setHttpEndPoint(new EndPoint().setAddress('127.0.0.1').setPort(port));
  return new ClusterInfo().setMembersList([member]);
}

const eventAnswers = new WeakMap<StoredEvent, ReadResponse>();

/** Made and encoded once, because most events are sent several times. */
export function eventAnswer(event: StoredEvent): ReadResponse {
  const known = eventAnswers.get(event);
  if (known) return known;
  const answer = newEventAnswer(event);
  const bytes = answer.serializeBinary();
  answer.serializeBinary = () => bytes;
  eventAnswers.set(event, answer);
  return answer;
}

function newEventAnswer(event: StoredEvent): ReadResponse {
  const recorded = new ReadResp.ReadEvent.RecordedEvent()
    .setId(new UUID().setString(event.id))
    .setStreamIdentifier(identifierOf(event.stream))
    .setStreamRevision(String(event.revision))
    .setCommitPosition(String(event.position))
    .setPreparePosition(String(event.position))
    .setData(event.data)
    .setCustomMetadata(event.meta);
  recorded.getMetadataMap().set('type', event.type);
  recorded.getMetadataMap().set('created', event.created);
  recorded.getMetadataMap().set('content-type', event.contentType);
  return new ReadResp().setEvent(new ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(String(event.position)));
}

export const notFoundAnswer = (stream: string): ReadResponse =>
  new ReadResp().setStreamNotFound(new ReadResp.StreamNotFound().setStreamIdentifier(identifierOf(stream)));

export const confirmationAnswer = (id: string): ReadResponse =>
  new ReadResp().setConfirmation(new ReadResp.SubscriptionConfirmation().setSubscriptionId(id));

export const caughtUpAnswer = (): ReadResponse => new ReadResp().setCaughtUp(new ReadResp.CaughtUp());

export const checkpointAnswer = (position: number): ReadResponse =>
  new ReadResp().setCheckpoint(
    new ReadResp.Checkpoint().setCommitPosition(String(position)).setPreparePosition(String(position)),
  );

export function batchSuccess(written: Written): BatchResponse {
  return new BatchAppendResp().setSuccess(
    new BatchAppendResp.Success()
      .setCurrentRevision(String(written.revision))
      .setPosition(
        new AllStreamPosition()
          .setCommitPosition(String(written.position))
          .setPreparePosition(String(written.position)),
      ),
  );
}

export function batchRefusal(refusal: Refusal, stream: string): BatchResponse {
  return new BatchAppendResp().setError(statusOf(refusal, stream));
}

function statusOf(refusal: Refusal, stream: string): InstanceType<typeof statusMessages.Status> {
  const status = (message: string, type: string, details: Uint8Array) => {
    const any = new googleAny.Any();
    any.pack(details, type);
    return new statusMessages.Status().setMessage(message).setDetails(any);
  };
  switch (refusal.kind) {
    case 'conflict': {
      const details = new WrongExpectedVersion();
      if (refusal.actual < 0) details.setCurrentNoStream(new googleEmpty.Empty());
      else details.setCurrentStreamRevision(String(refusal.actual));
      if (refusal.expected === 'any') details.setExpectedAny(new googleEmpty.Empty());
      else if (refusal.expected === 'none') details.setExpectedNoStream(new googleEmpty.Empty());
      else details.setExpectedStreamPosition(String(refusal.expected));
      return status('WrongExpectedVersion', 'event_store.client.WrongExpectedVersion', details.serializeBinary());
    }
    case 'deleted': {
      const details = new StreamDeleted().setStreamIdentifier(identifierOf(stream));
      return status('StreamDeleted', 'event_store.client.StreamDeleted', details.serializeBinary());
    }
    case 'too large': {
      const details = new MaximumAppendSizeExceeded().setMaxappendsize(refusal.limit);
      return status(
        'MaximumAppendSizeExceeded',
        'event_store.client.MaximumAppendSizeExceeded',
        details.serializeBinary(),
      );
    }
    case 'not ready':
      return status('Server Is Not Ready', 'google.protobuf.Empty', new googleEmpty.Empty().serializeBinary());
  }
}

export function appendSuccess(written: Written): AppendResponse {
  const position = new AppendResp.Position()
    .setCommitPosition(String(written.position))
    .setPreparePosition(String(written.position));
  return new AppendResp().setSuccess(
    new AppendResp.Success().setCurrentRevision(String(written.revision)).setPosition(position),
  );
}

export function appendConflict(refusal: Extract<Refusal, { kind: 'conflict' }>): AppendResponse {
  const details = new AppendResp.WrongExpectedVersion();
  if (refusal.actual < 0) details.setCurrentNoStream(new Empty());
  else details.setCurrentRevision(String(refusal.actual));
  if (refusal.expected === 'any') details.setExpectedAny(new Empty());
  else if (refusal.expected === 'none') details.setExpectedNoStream(new Empty());
  else details.setExpectedRevision(String(refusal.expected));
  return new AppendResp().setWrongExpectedVersion(details);
}
