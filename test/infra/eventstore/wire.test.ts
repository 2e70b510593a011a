import sharedMessages from '@eventstore/db-client/generated/shared_pb.js';
import streamsMessages from '@eventstore/db-client/generated/streams_pb.js';
import { expect } from 'chai';
import { prepareAppend } from '../../../infra/event-log/prepared.ts';
import { appendMessage, readMessage, readResponse } from '../../../infra/eventstore/wire.ts';
import type { Expectation } from '../../../shared/ports/event-log.ts';

const { BatchAppendReq, BatchAppendResp, ReadResp } = streamsMessages;
const { ReadEvent } = ReadResp;
const { Empty, StreamIdentifier, UUID } = sharedMessages;

const ID = '0192f1c3-8a4e-7b11-9c55-f0e1d2c3b4a5';
const HALVES: readonly [bigint, bigint] = [0x0192f1c38a4e7b11n, 0x9c55f0e1d2c3b4a5n];
const LARGE = 2 ** 53 - 1;

/** As the server sends it where no form is asked for. */
function structured(): InstanceType<typeof UUID> {
  const [most, least] = HALVES.map((half) => String(BigInt.asIntN(64, half))) as [string, string];
  return new UUID().setStructured(new UUID.Structured().setMostSignificantBits(most).setLeastSignificantBits(least));
}

const bytesOf = (message: { serializeBinary(): Uint8Array }): Buffer => Buffer.from(message.serializeBinary());

function recorded(id = structured()): InstanceType<typeof ReadEvent.RecordedEvent> {
  const event = new ReadEvent.RecordedEvent()
    .setId(id)
    .setStreamIdentifier(new StreamIdentifier().setStreamName(Buffer.from('agent-é-1')))
    .setStreamRevision('7')
    .setPreparePosition(String(LARGE - 1))
    .setCommitPosition(String(LARGE))
    .setCustomMetadata(Buffer.from('{"at":1}'))
    .setData(Buffer.from('{"名":"x"}'));
  event.getMetadataMap().set('type', 'AgentUpdated').set('content-type', 'application/json').set('created', '17');
  return event;
}

describe('messages of an event store server', () => {
  it('an event of a read is what the generated code of the client writes', () => {
    for (const id of [structured(), new UUID().setString(ID.toUpperCase())]) {
      const sent = new ReadResp().setEvent(new ReadEvent().setEvent(recorded(id)).setCommitPosition('5'));
      expect(readMessage(bytesOf(sent))).to.deep.equal({
        kind: 'event',
        event: {
          id: ID,
          stream: 'agent-é-1',
          revision: 7,
          position: LARGE,
          type: 'AgentUpdated',
          contentType: 'application/json',
          data: Buffer.from('{"名":"x"}'),
          meta: Buffer.from('{"at":1}'),
        },
      });
    }
  });

  it('distinguishes the other messages of a subscription', () => {
    const sent = [
      new ReadResp().setConfirmation(new ReadResp.SubscriptionConfirmation().setSubscriptionId('one')),
      new ReadResp().setCaughtUp(new ReadResp.CaughtUp()),
      new ReadResp().setFellBehind(new ReadResp.FellBehind()),
      new ReadResp().setCheckpoint(new ReadResp.Checkpoint().setCommitPosition('12').setPreparePosition('11')),
      new ReadResp().setFirstStreamPosition('3'),
      new ReadResp().setEvent(new ReadEvent().setNoPosition(new Empty())),
    ];
    expect(sent.map((message) => readMessage(bytesOf(message)))).to.deep.equal([
      { kind: 'confirmed' },
      { kind: 'caught up' },
      { kind: 'fell behind' },
      { kind: 'checkpoint', position: 12 },
      { kind: 'other' },
      { kind: 'other' },
    ]);
  });

  it('a position beyond the safe integers is not taken for a smaller one', () => {
    const checkpoint = new ReadResp.Checkpoint().setCommitPosition('18446744073709551615');
    const message = readMessage(bytesOf(new ReadResp().setCheckpoint(checkpoint)));
    expect(message).to.deep.include({ kind: 'checkpoint' });
    expect(Number.isSafeInteger((message as { position: number }).position)).to.equal(false);
  });

  it('refuses bytes that end within a message', () => {
    const whole = bytesOf(new ReadResp().setEvent(new ReadEvent().setEvent(recorded())));
    for (const length of [1, 10, whole.length - 1]) {
      expect(() => readMessage(whole.subarray(0, length))).to.throw(RangeError);
    }
  });

  it('a response to an append has its correlation id, revision and position, or nothing stored', () => {
    const position = new sharedMessages.AllStreamPosition().setCommitPosition(String(LARGE)).setPreparePosition('1');
    const success = new BatchAppendResp.Success().setCurrentRevision('41');
    const sent = (one: InstanceType<typeof BatchAppendResp.Success>) =>
      readResponse(bytesOf(new BatchAppendResp().setCorrelationId(structured()).setSuccess(one)));
    expect(sent(success)).to.deep.equal({ correlationId: ID, stored: { revision: 41, position: undefined } });
    expect(sent(success.setPosition(position))).to.deep.equal({
      correlationId: ID,
      stored: { revision: 41, position: LARGE },
    });
    const refused = bytesOf(new BatchAppendResp().setCorrelationId(structured()));
    expect(readResponse(refused)).to.deep.equal({ correlationId: ID, stored: undefined });
  });

  it('an append is what the generated code of the client reads', () => {
    const expectations: readonly [Expectation, string, string][] = [
      ['any', 'hasAny', ''],
      ['none', 'hasNoStream', ''],
      [0, 'hasStreamPosition', '0'],
      [LARGE, 'hasStreamPosition', String(LARGE)],
    ];
    for (const [expected, has, revision] of expectations) {
      const events = [1, 2].map((n) => ({
        id: ID.replace(/^./, String(n)),
        type: `Type${n}`,
        data: { n, text: 'ü\u0000😀' },
        meta: { n },
      }));
      const bytes = appendMessage(ID, 'x.stream-é', prepareAppend('stream-é', events, expected));
      const request = BatchAppendReq.deserializeBinary(bytes);
      const options = request.getOptions();
      expect(request.getCorrelationId()?.getString()).to.equal(ID);
      expect(request.getIsFinal()).to.equal(true);
      expect(Buffer.from(options?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString()).to.equal('x.stream-é');
      expect(options?.[has as 'hasAny']()).to.equal(true);
      expect(options?.hasDeadline()).to.equal(false);
      if (revision !== '') expect(options?.getStreamPosition()).to.equal(revision);
      const messages = request.getProposedMessagesList();
      expect(messages.map((one) => one.getId()?.getString())).to.deep.equal(events.map(({ id }) => id));
      expect(messages.map((one) => one.getMetadataMap().toObject())).to.deep.equal(
        events.map(({ type }) => [
          ['content-type', 'application/json'],
          ['type', type],
        ]),
      );
      for (const [n, one] of messages.entries()) {
        expect(JSON.parse(Buffer.from(one.getData_asU8()).toString())).to.deep.equal(events[n]?.data);
        expect(JSON.parse(Buffer.from(one.getCustomMetadata_asU8()).toString())).to.deep.equal(events[n]?.meta);
      }
    }
  });
});
