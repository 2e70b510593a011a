/** The event stream of the client: silence and bounds. Under kill -9: `faults/kill.test.ts`. */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { createClient, type Frame, type SignalboxError, type StreamState } from '../../client/index.ts';
import { readFrames } from '../../client/stream.ts';
import { fixture } from '../support/fixture.ts';
import { listen } from '../support/listen.ts';
import { call, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

describe('client stream against the service', () => {
  const service = fixture(startTestService);

  const clientOf = (apiKey = service.adminKey) => createClient({ url: service.url, apiKey });
  const create = (name: string) => call(service, 'POST', '/api/agents', { name, role: 'researcher' });

  it('a new iterator with since resumes after that frame', async () => {
    await create('one');
    await create('two');
    await create('three');
    const seen: string[] = [];
    let since = '0';
    for (let count = 1; count <= 3; count++) {
      for await (const frame of clientOf().events({ since, kinds: ['agent.created'] })) {
        seen.push(String(frame.data?.name));
        since = frame.id;
        break;
      }
    }
    expect(seen).to.deep.equal(['one', 'two', 'three']);
  });
  it('leaving the loop closes the connection', async () => {
    const open = () =>
      call(service, 'GET', '/metrics').then(({ body }) => Number(/signalbox_stream_clients\S* (\d+)/.exec(body)?.[1]));
    for await (const _ of clientOf().events({ since: '0' })) break;
    await until('no stream is open', async () => (await open()) === 0);
  });
  it('a wrong key is an error and is not retried endlessly', async () => {
    const error = await clientOf('wrong-key-0123456789')
      .events()
      .next()
      .catch((reason: SignalboxError) => reason);
    expect(error).to.include({ status: 401 });
  });
  it('an id that is not in the log is an error with its code', async () => {
    const error = await clientOf()
      .events({ since: '999999999' })
      .next()
      .catch((reason: SignalboxError) => reason);
    expect(error).to.include({ status: 400, code: 'UNKNOWN_EVENT_ID' });
  });
  it('abort ends the iteration even if no frame arrives', async () => {
    const abort = new AbortController();
    const frames: Frame[] = [];
    for await (const frame of clientOf().events({
      // Of no other test.
      kinds: ['webhook.never'],
      signal: abort.signal,
      onState: () => setTimeout(() => abort.abort(), 50),
    }))
      frames.push(frame);
    expect(frames).to.deep.equal([]);
  });
});

describe('client stream against a server that breaks off', () => {
  let respond: (res: ServerResponse, lastId: string | undefined) => void;
  const server = fixture(() => listen((req, res) => respond(res, req.headers['last-event-id'] as string | undefined)));
  const frame = (id: string) => `id: ${id}\ndata: {"type":"task.updated","data":{},"timestamp":1}\n\n`;
  const head = (res: ServerResponse) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write('data: {"type":"connected","data":null,"timestamp":1}\n\n');
  };

  it('a silent connection counts as lost, and the stream resumes after the last frame', async () => {
    const asked: (string | undefined)[] = [];
    respond = (res, lastId) => {
      asked.push(lastId);
      head(res);
      // The second half of a frame never arrives.
      res.write(lastId === undefined ? frame('1') + frame('2').slice(0, 12) : frame('2'));
    };
    const ids: string[] = [];
    const errors: (string | undefined)[] = [];
    const options = {
      silenceMs: 200,
      longestPauseMs: 20,
      onState: (now: StreamState) => now.state === 'lost' && errors.push(now.error?.code),
    };
    for await (const { id } of createClient({ url: server.url }).events(options)) {
      ids.push(id);
      if (ids.length === 2) break;
    }
    expect(ids).to.deep.equal(['1', '2']);
    expect(asked).to.deep.equal([undefined, '1']);
    expect(errors).to.deep.equal(['TIMEOUT']);
  });
  it('a consumer that is slower than the silence limit loses nothing', async () => {
    let connections = 0;
    respond = (res) => {
      connections++;
      head(res);
      res.write(frame('1'));
      setTimeout(() => res.write(frame('2')), 250);
    };
    const ids: string[] = [];
    for await (const { id } of createClient({ url: server.url }).events({ silenceMs: 200 })) {
      ids.push(id);
      if (ids.length === 2) break;
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    expect(ids).to.deep.equal(['1', '2']);
    expect(connections).to.equal(1);
  });
  it('the client waits for the Retry-After of a rejected connection', async () => {
    const times: number[] = [];
    respond = (res) => {
      times.push(performance.now());
      if (times.length === 1) res.writeHead(429, { 'retry-after': '1' }).end('{"error":"too many"}');
      else {
        head(res);
        res.write(frame('1'));
      }
    };
    for await (const _ of createClient({ url: server.url }).events({ longestPauseMs: 20 })) break;
    expect((times[1] ?? 0) - (times[0] ?? 0)).to.be.at.least(990);
  });
  it('a redirect is an error that names its target', async () => {
    let requests = 0;
    respond = (res) => {
      requests++;
      res.writeHead(307, { location: 'http://127.0.0.1:1/api/events' }).end();
    };
    const error = await createClient({ url: server.url, apiKey: 'key' })
      .events({ longestPauseMs: 20 })
      .next()
      .catch((reason: SignalboxError) => reason);
    expect(error).to.include({ status: 307, code: 'REDIRECTED' });
    expect((error as SignalboxError).message).to.match(/redirects to http:\/\/127\.0\.0\.1:1\/api\/events/);
    expect(requests).to.equal(1);
  });
  it('a page instead of a stream is an error', async () => {
    respond = (res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
    const error = await createClient({ url: server.url })
      .events()
      .next()
      .catch((reason: SignalboxError) => reason);
    expect(error).to.include({ status: 404 });
  });
});

describe('client stream frames', () => {
  const text =
    'id: 7.1\ndata: {"type":"a","data":null,"timestamp":1}\n\n: comment\n\nid: 7\ndata: {"type":"b",\ndata: "data":{"x":"é"},"timestamp":2}\n\n';
  const expected = [
    { id: '7.1', type: 'a', data: null, timestamp: 1 },
    { id: '7', type: 'b', data: { x: 'é' }, timestamp: 2 },
  ];
  it('are parsed regardless of chunk boundaries and line endings', () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const sent = text.replaceAll('\n', end);
      for (let size = 1; size <= sent.length; size++) {
        let rest = '';
        const read: Frame[] = [];
        for (let at = 0; at < sent.length; at += size) {
          const { complete, rest: left } = readFrames(rest + sent.slice(at, at + size));
          rest = left;
          read.push(...complete);
        }
        // A final CR may belong to a CR LF.
        read.push(...readFrames(`${rest}\n`).complete);
        expect(read, `${JSON.stringify(end)}, ${size}`).to.deep.equal(expected);
      }
    }
  });
});
