/** Bodies and headers of deliveries. */
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import {
  bodyOf,
  cloudEventOf,
  headersOf,
  signatureOf,
  standardSignatureOf,
} from '../../../commands/webhooks/signatures.ts';

describe('webhooks: signatures', () => {
  it('sign a compact JSON body with event, time and data', () => {
    expect(bodyOf({ type: 'test.ping', data: { a: 'ä', b: null } }, 1_700_000_000_999)).to.equal(
      '{"event":"test.ping","timestamp":1700000000,"data":{"a":"ä","b":null}}',
    );
  });

  it('omit data that would exceed one megabyte, and mark the omission', () => {
    const body = bodyOf({ type: 'activity.x', data: { id: 3, workspace_id: 1, text: 'ä'.repeat(500_000) } }, 0);
    expect(JSON.parse(body).data).to.deep.equal({ id: 3, workspace_id: 1, truncated: true });
    expect(JSON.parse(bodyOf({ type: 'x', data: { text: 'x'.repeat(990_000) } }, 0)).data).not.to.have.key('truncated');
  });

  it('give a CloudEvent the id, type and time of the message, and the same size limit', () => {
    const message = { id: 'msg_1', type: 'test.ping', at: 1_700_000_000_999, data: { a: 'ä' } };
    expect(cloudEventOf(message, 7)).to.equal(
      '{"specversion":"1.0","id":"msg_1","source":"/workspaces/7","type":"test.ping","time":"2023-11-14T22:13:20.999Z","datacontenttype":"application/json","data":{"a":"ä"}}',
    );
    const long = { ...message, data: { id: 3, workspace_id: 7, text: 'ä'.repeat(500_000) } };
    expect(JSON.parse(cloudEventOf(long, 7)).data).to.deep.equal({ id: 3, workspace_id: 7, truncated: true });
  });

  it('use the text of the secret as the key, not the bytes of its hex digits', () => {
    // Computed with: printf '{"a":1}' | openssl dgst -sha256 -hmac 00ff
    expect(signatureOf('00ff', '{"a":1}')).to.equal(
      'sha256=a81c50bd89a8150660e0dc4de3c7c3ce8ba5c33432115ec21aa7fb66a241800d',
    );
  });

  it('sign the UTF-8 body exactly as it is sent', () => {
    const body = '{"name":"Zoë – 日本 😀"}';
    const bytes = Buffer.from(body, 'utf8');
    const secret = '00ff'.repeat(16);
    const plain = createHmac('sha256', secret).update(bytes).digest('hex');
    expect(signatureOf(secret, body)).to.equal(`sha256=${plain}`);
    const signed = Buffer.concat([Buffer.from('msg_1.1700000000.'), bytes]);
    const standard = createHmac('sha256', Buffer.from(secret, 'base64')).update(signed).digest('base64');
    expect(standardSignatureOf(secret, { id: 'msg_1', timestamp: 1_700_000_000, body })).to.equal(`v1,${standard}`);
  });

  it('are made with the current and the former secrets, each in its header', () => {
    const [now, before, older] = ['00ff', '11ee', '22dd'].map((text) => text.repeat(16)) as [string, string, string];
    const message = { id: 'msg_1', type: 'test.ping' };
    const headers = headersOf(message, { secrets: [now, before, older], format: 'json', body: '{}', at: 1_000 });
    const standard = (secret: string) => standardSignatureOf(secret, { id: 'msg_1', timestamp: 1, body: '{}' });
    expect(headers['x-mc-signature'], 'receivers compare its whole value').to.equal(signatureOf(now, '{}'));
    expect(headers['x-mc-signature-previous']).to.equal(signatureOf(before, '{}'));
    expect(headers['webhook-signature']).to.equal([now, before, older].map(standard).join(' '));
    const single = headersOf(message, { secrets: [now], format: 'json', body: '{}', at: 1_000 });
    expect(single).not.to.have.property('x-mc-signature-previous');
  });

  it('replace characters of a type that are not valid in a header', () => {
    const headers = headersOf(
      { id: 'msg_1', type: 'activity.é\r\nx: y' },
      { secrets: [], format: 'json', body: '', at: 0 },
    );
    expect(headers['x-mc-event']).to.equal('activity.???x: y');
  });
});
