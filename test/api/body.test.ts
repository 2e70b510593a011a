/** Bodies of requests that are read without body-parser: what they mean, and what is refused. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { readJson } from '../../api/http/body.ts';
import { AppError } from '../../shared/errors.ts';

function requestOf(chunks: readonly (string | Buffer)[], headers: IncomingHttpHeaders = {}, ends = true) {
  const stream = new PassThrough();
  for (const chunk of chunks) stream.write(chunk);
  if (ends) stream.end();
  const length = chunks.reduce((sum, chunk) => sum + Buffer.byteLength(chunk), 0);
  return Object.assign(stream, { headers: { 'content-length': String(length), ...headers } });
}

const read = (request: unknown) => readJson(request as IncomingMessage, {} as ServerResponse);
const refusalOf = (request: unknown): Promise<AppError> =>
  read(request).then(
    () => expect.fail('it was read'),
    (error) => error,
  );

describe('the body of a request', () => {
  it('decodes the same whether it arrives whole or in parts, even if split within a character', async () => {
    const bytes = Buffer.from('{"text":"é€😀"}');
    expect(await read(requestOf([bytes]))).to.deep.equal({ text: 'é€😀' });
    for (let at = 1; at < bytes.length; at++)
      expect(await read(requestOf([bytes.subarray(0, at), bytes.subarray(at)]))).to.deep.equal({ text: 'é€😀' });
    expect(await read(requestOf(['\ufeff[1]'])), 'with a byte order mark').to.deep.equal([1]);
    expect(await read(requestOf(['7'])), 'not only objects').to.equal(7);
  });

  it('is UTF-8 under each name of it', async () => {
    for (const name of ['utf8', 'UTF8', '"utf8"', 'utf-8']) {
      const request = requestOf(['{"text":"é"}'], { 'content-type': `application/json; charset=${name}` });
      expect(await read(request), name).to.deep.equal({ text: 'é' });
    }
  });

  it('may be empty', async () => {
    expect(await read(requestOf([]))).to.equal(undefined);
  });

  it('is rejected with an explanation if it is not JSON', async () => {
    const refused = await refusalOf(requestOf(['{"a":}']));
    expect(refused).to.be.instanceOf(AppError).with.property('status', 400);
    expect(refused.message).to.match(
      /^JSON body required: what was sent is not valid JSON \(Unexpected token.*\); send one JSON object\.$/,
    );
  });

  it('is rejected if the connection ends before the whole body has arrived', async () => {
    const early = requestOf(['{"a":'], { 'content-length': '20' }, false);
    const reading = refusalOf(early);
    early.destroy();
    expect(await reading)
      .to.include({ status: 400 })
      .and.property('message')
      .match(/connection ended/);
    expect(await refusalOf(early), 'gone before it is read').to.include({ status: 400 });
    const broken = requestOf(['{'], { 'content-length': '20' }, false);
    const failing = refusalOf(broken);
    broken.destroy(new Error('reset'));
    expect(await failing).to.include({ status: 400 });
  });
});
