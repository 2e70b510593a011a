/** What receivers can verify, and with what. */
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { verifyDocsResponse } from '../../../shared/contract/webhooks/signatures.ts';
import { fixture } from '../../support/fixture.ts';
import { startReceiver } from '../../support/receiver.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startWebhooksWorld } from '../../support/worlds/webhooks.ts';

describe('signatures of webhooks', () => {
  const receiver = fixture(startReceiver);
  const world = fixture(() => startWebhooksWorld(receiver));

  it('are explained completely, without the secret', async () => {
    const body = conforms(verifyDocsResponse, await world.ask('GET', '/api/webhooks/verify-docs'));
    expect(body).to.include({
      algorithm: 'HMAC-SHA256',
      header: 'X-MC-Signature',
      format: 'sha256=<hex-digest>',
    });
    expect(body.verification_steps).to.have.length(6);
  });

  it('are verified by the example in the instructions, which accepts nothing else', async () => {
    const { id, secret } = await world.createWebhook();
    const { example_nodejs: code } = (await world.ask('GET', '/api/webhooks/verify-docs')).body;
    const { isGenuine } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
      isGenuine: (secret: string, body: Buffer, signature: string | undefined) => boolean;
    };
    await world.ask('POST', '/api/webhooks/test', { id });
    const { text, headers } = receiver.requests.at(-1) ?? expect.fail('nothing was sent');
    const signature = headers['x-mc-signature'] as string;
    expect(isGenuine(secret, Buffer.from(text), signature)).to.equal(true);
    expect(isGenuine(secret, Buffer.from(`${text} `), signature)).to.equal(false);
    expect(isGenuine('other', Buffer.from(text), signature)).to.equal(false);
    expect(isGenuine(secret, Buffer.from(text), undefined)).to.equal(false);
    expect(signature).to.equal(`sha256=${createHmac('sha256', secret).update(text).digest('hex')}`);
  });

  it('are verified by the Standard Webhooks library with the secret as shown', async () => {
    const { id, secret } = await world.createWebhook();
    await world.ask('POST', '/api/webhooks/test', { id });
    const { text, headers, body } = receiver.requests.at(-1) ?? expect.fail('nothing was sent');
    const given = headers as Record<string, string>;
    expect(new Webhook(secret).verify(text, given)).to.deep.equal(body);
    expect(() => new Webhook(secret).verify(`${text} `, given)).to.throw();
    expect(Number(given['webhook-timestamp'])).to.equal(body.timestamp);
  });

  it('are made with the old secret, too, for a day after it was replaced', async () => {
    const { id, secret: old } = await world.createWebhook();
    const { secret } = (await world.ask('PUT', '/api/webhooks', { id, regenerate_secret: true })).body;
    await world.ask('POST', '/api/webhooks/test', { id });
    const { text, headers } = receiver.requests.at(-1) ?? expect.fail('nothing was sent');
    const given = headers as Record<string, string>;
    for (const known of [old, secret]) new Webhook(known).verify(text, given);
    expect(given['webhook-signature']?.split(' ')).to.have.length(2);
    const plain = (key: string) => `sha256=${createHmac('sha256', key).update(text).digest('hex')}`;
    expect(given['x-mc-signature']).to.equal(plain(secret));
    expect(given['x-mc-signature-previous']).to.equal(plain(old));
  });

  it('are omitted without a secret, but an id and a time are sent', async () => {
    const { id } = await world.createWebhook({ generate_secret: false });
    await world.ask('POST', '/api/webhooks/test', { id });
    const { headers } = receiver.requests.at(-1) ?? expect.fail('nothing was sent');
    expect(headers).not.to.have.any.keys('x-mc-signature', 'webhook-signature');
    expect(headers).to.include.keys('webhook-id', 'webhook-timestamp', 'x-mc-event');
    expect(headers['user-agent']).to.match(/-Webhook\/1\.0$/);
  });
});
