/** Deliveries of webhooks, and what happens after failed ones. */
import { expect } from 'chai';
import { type CloudEvent, HTTP } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { deliveriesResponse, deliveryResult } from '../../../shared/contract/webhooks/deliveries.ts';
import { fixture } from '../../support/fixture.ts';
import { OK, type Received, startReceiver } from '../../support/receiver.ts';
import { bodyOf } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startWebhooksWorld } from '../../support/worlds/webhooks.ts';

/** A path of its own for each webhook, to distinguish requests. */
let paths = 0;

describe('deliveries of webhooks', () => {
  const receiver = fixture(startReceiver);
  const world = fixture(() => startWebhooksWorld(receiver));
  const { ask } = world;

  const hook = async (events: string[], fields: object = {}) => {
    const path = `/hook/${++paths}`;
    const made = await world.createWebhook({ url: `http://127.0.0.1:${receiver.port}${path}`, events, ...fields });
    return {
      id: made.id as number,
      path,
      received: () => receiver.requests.filter((one) => one.path === path),
    };
  };
  const deliveriesOf = async (id: number, more = '') =>
    conforms(deliveriesResponse, await ask('GET', `/api/webhooks/deliveries?webhook_id=${id}${more}`));
  const task = async (title: string) => bodyOf(await ask('POST', '/api/tasks', { title }), 201).task;
  const titles = (received: readonly { body: { data: { title: string } } }[]) =>
    received.map(({ body }) => body.data.title);

  afterEach(() => receiver.react(() => OK));

  it('are sent once to each webhook that subscribes to the event, with the record and its activity', async () => {
    const [chosen, all, other] = [
      await hook(['activity.task_created']),
      await hook(['*']),
      await hook(['activity.task_create', 'activity', 'activity.*']),
    ];
    const made = await task('told');
    const [received] = await until('the webhook is told', () => chosen.received().length > 0 && chosen.received());
    const { event, timestamp, data } = received?.body ?? {};
    expect(Object.keys(received?.body)).to.deep.equal(['event', 'timestamp', 'data']);
    expect(event).to.equal('activity.task_created');
    expect(timestamp).to.be.closeTo(Date.now() / 1_000, 20);
    expect(data).to.include({ id: made.id, title: 'told', entity_type: 'task', entity_id: made.id, workspace_id: 1 });
    expect(data.activity).to.include({ type: 'task_created', entity_id: made.id });
    expect(received?.headers).to.include({ 'x-mc-event': event, 'content-type': 'application/json' });
    await until('the other is told as well', () => titles(all.received()).includes('told'));
    // What comes after it has come: nothing else can be on its way.
    await task('after');
    await until('the next one is told', () => titles(chosen.received()).includes('after'));
    expect(titles(chosen.received())).to.deep.equal(['told', 'after']);
    expect(other.received(), 'names are no prefixes').to.deep.equal([]);
    for (const { id } of [chosen, all, other]) await ask('DELETE', '/api/webhooks', { id });
    expect((await deliveriesOf(chosen.id)).total, 'deliveries go with their webhook').to.equal(0);
  });

  it('are signed CloudEvents 1.0 in the format cloudevents, with the same id at each attempt', async () => {
    const { path, id, received } = await hook(['activity.task_created'], { format: 'cloudevents' });
    expect(await world.webhook(id)).to.include({ format: 'cloudevents' });
    const { secret } = (await ask('PUT', '/api/webhooks', { id, regenerate_secret: true })).body;
    receiver.react((one) => (one.path === path && received().length === 1 ? { status: 500 } : OK));
    const before = Date.now();
    const made = await task('as a CloudEvent');
    const after = Date.now();
    const [first, again] = await until('it was tried again', () => received().length === 2 && received());
    for (const { headers, text } of [first, again] as Received[]) {
      expect(headers).to.include({
        'content-type': 'application/cloudevents+json',
        'x-mc-event': 'activity.task_created',
      });
      new Webhook(secret).verify(text, headers as Record<string, string>);
      // The SDK recognises the mode by the content type, and validates against the schema of the specification.
      const message = { headers: headers as Record<string, string>, body: text };
      expect(HTTP.isEvent(message)).to.equal(true);
      const event = HTTP.toEvent<{ readonly id: number }>(message) as CloudEvent<{ readonly id: number }>;
      expect(event.validate()).to.equal(true);
      const { data, time, ...attributes } = JSON.parse(JSON.stringify(event));
      expect(attributes).to.deep.equal({
        specversion: '1.0',
        id: headers['webhook-id'],
        source: '/workspaces/1',
        type: 'activity.task_created',
        datacontenttype: 'application/json',
      });
      expect(Date.parse(time), 'the time of the event').to.be.within(before, after);
      expect(data).to.include({ id: made.id, title: 'as a CloudEvent', workspace_id: 1 });
    }
    expect(again?.text, 'each attempt sends the same event').to.equal(first?.text);
    // The format is that of the webhook at the time of the attempt.
    await ask('PUT', '/api/webhooks', { id, format: 'json' });
    const [last] = (await deliveriesOf(id)).deliveries;
    await ask('POST', '/api/webhooks/retry', { delivery_id: last.id });
    expect(received()[2]?.body).to.deep.include({ event: 'activity.task_created', data: first?.body.data });
    expect(received()[2]?.headers).to.include({ 'content-type': 'application/json' });
    await ask('DELETE', '/api/webhooks', { id });
  });

  it('are listed with their request and response', async () => {
    receiver.react(() => ({ status: 201, body: 'x'.repeat(1_500) }));
    const { id, received } = await hook(['activity.task_created']);
    await task('listed');
    const { deliveries, total } = await until('it is recorded', async () => {
      const page = await deliveriesOf(id);
      return page.total > 0 && page;
    });
    expect(total).to.equal(1);
    const [sent] = received();
    const { id: number, duration_ms, created_at, ...shown } = deliveries[0];
    expect(shown).to.deep.equal({
      webhook_id: id,
      event_type: 'activity.task_created',
      event: 'activity.task_created',
      message_id: sent?.headers['webhook-id'],
      payload: sent?.text,
      status_code: 201,
      response_body: `${'x'.repeat(1_000)}...`,
      error: null,
      attempt: 0,
      is_retry: 0,
      parent_delivery_id: null,
      next_retry_at: null,
      workspace_id: 1,
      webhook_name: 'hook',
      webhook_url: (await world.webhook(id)).url,
    });
    expect(number).to.be.above(0);
    expect(duration_ms).to.be.at.least(0);
    expect(await world.webhook(id)).to.include({
      last_fired_at: created_at,
      last_status: 201,
      total_deliveries: 1,
      successful_deliveries: 1,
      failed_deliveries: 0,
    });
    expect((await deliveriesOf(999_999)).deliveries, 'an unknown webhook').to.deep.equal([]);
  });

  it('include agent statuses, failed sign-ins and new users under their types', async () => {
    const { id, received } = await hook([
      'agent.error',
      'agent.status_change',
      'security.login_failed',
      'security.user_created',
    ]);
    const types = () => received().map(({ body }) => body.event);
    const agent = await world.create();
    await ask('PUT', `/api/agents/${agent.id}`, { status: 'error' });
    await until('the error is told', () => types().includes('agent.error'));
    await ask('POST', `/api/agents/${agent.id}/wake`, {});
    await until('the status is told', () => types().includes('agent.status_change'));
    await ask('POST', '/api/auth/login', { username: 'a-typed-password', password: 'wrong password' }, '');
    await until('the failure is told', () => types().includes('security.login_failed'));
    expect(JSON.stringify(received().map(({ body }) => body))).to.not.include('a-typed-password');
    await ask('POST', '/api/auth/users', { username: 'told-of', password: 'a long enough password', role: 'viewer' });
    await until('the user is told', () => types().includes('security.user_created'));
    await ask('DELETE', '/api/webhooks', { id });
  });

  it('are retried with the same id and a new time, no more often than configured', async () => {
    const { id, received } = await hook(['activity.task_created']);
    receiver.react(({ path }) => (path.endsWith('x') ? OK : { status: 500, body: 'no' }));
    await task('refused');
    const { deliveries } = await until('it has been tried three times', async () => {
      const page = await deliveriesOf(id);
      return page.total === 3 && page;
    });
    expect(new Set(received().map(({ headers }) => headers['webhook-id'])).size).to.equal(1);
    expect(deliveries.map(({ attempt }: { attempt: number }) => attempt)).to.deep.equal([2, 1, 0]);
    expect(deliveries.map((one: Record<string, unknown>) => one.parent_delivery_id)).to.deep.equal([
      deliveries[1].id,
      deliveries[2].id,
      null,
    ]);
    expect(deliveries[0]).to.include({ status_code: 500, response_body: 'no', error: null, next_retry_at: null });
    // Three failures in a row, the last of them the last attempt.
    const disabled = await until('it is disabled', async () => {
      const one = await world.webhook(id);
      return !one.enabled && one;
    });
    expect(disabled).to.include({
      consecutive_failures: 3,
      circuit_open: true,
      last_status: 500,
      failed_deliveries: 3,
    });
    // Events of this time are not delivered; later ones are, once it is enabled again.
    receiver.react(() => OK);
    await task('missed');
    await ask('PUT', '/api/webhooks', { id, reset_circuit: true });
    expect(await world.webhook(id)).to.include({ enabled: true, consecutive_failures: 0, circuit_open: false });
    await task('back');
    await until('the webhook is told again', () => titles(received()).includes('back'));
    expect(titles(received())).to.deep.equal(['refused', 'refused', 'refused', 'back']);
  });

  it('are retried when the receiver says with Retry-After, if that is later', async () => {
    const { id } = await hook(['activity.task_created']);
    receiver.react(() => ({ status: 429, headers: { 'retry-after': '3600' } }));
    const before = Date.now() / 1_000;
    await task('too many');
    const { deliveries } = await until('it is recorded', async () => {
      const page = await deliveriesOf(id);
      return page.total > 0 && page;
    });
    expect(deliveries[0].next_retry_at).to.be.within(Math.floor(before + 3_600), Date.now() / 1_000 + 3_601);
    await ask('DELETE', '/api/webhooks', { id });
  });

  it('end at once when the receiver responds with 410: the webhook is disabled, and its admins are notified', async () => {
    const { id, received } = await hook(['activity.task_created']);
    receiver.react(() => ({ status: 410 }));
    await task('gone');
    await until('it is disabled', async () => !(await world.webhook(id)).enabled);
    expect(received()).to.have.length(1);
    const { entries } = bodyOf(await ask('GET', '/api/audit?action=webhook_disabled'), 200);
    const [entry] = entries.filter((one: { target_id: number }) => one.target_id === id);
    expect(entry).to.deep.include({ target_type: 'webhook', detail: { reason: 'gone', failures: 1 } });
    const { notifications } = bodyOf(await ask('GET', '/api/notifications?recipient=admin'), 200);
    const notified = notifications.find((one: { source_id: number; type: string }) => one.type === 'webhook_disabled');
    expect(notified).to.include({ source_type: 'webhook', title: 'A webhook was disabled' });
    expect(notified.message).to.include('410 Gone');
    // The message waits: it is sent once the webhook is enabled again.
    receiver.react(() => OK);
    await ask('PUT', '/api/webhooks', { id, enabled: true });
    await until('it is sent again', () => received().length === 2);
    await ask('DELETE', '/api/webhooks', { id });
  });

  it('wait while the circuit is open, and follow in order once a retry succeeds', async () => {
    const { id, received } = await hook(['activity.task_created']);
    let back = false;
    receiver.react(() => (back ? OK : { status: 503 }));
    // Each fails for the first time before any is tried again: three in a row.
    const made = ['a', 'b', 'c', 'd', 'e'];
    for (const title of made) await task(title);
    await until('the circuit is open', async () => (await world.webhook(id)).circuit_open);
    back = true;
    await ask('PUT', '/api/webhooks', { id, enabled: true });
    const arrived = () => titles(received().filter((_, at) => at >= 0));
    await until('all have arrived', async () => {
      const { deliveries } = await deliveriesOf(id, '&limit=200');
      const ok = deliveries.filter(({ status_code }: { status_code: number }) => status_code === 200);
      return made.every((title) =>
        ok.some(({ payload }: { payload: string }) => JSON.parse(payload).data.title === title),
      );
    });
    const first = made.map((title) => arrived().indexOf(title));
    expect(first, 'first attempts are in order').to.deep.equal([...first].sort((x, y) => x - y));
  });

  it('are not retried while retries are off, and are repeated once they are on again', async () => {
    const set = async (value: string) => {
      const reply = await ask('PUT', '/api/settings', { settings: { 'webhooks.retry_enabled': value } });
      expect(reply.status, JSON.stringify(reply.body)).to.equal(200);
    };
    await set('false');
    const { id, received } = await hook(['activity.task_created']);
    receiver.react(() => ({ status: 500 }));
    await task('waits');
    await until('it has failed', async () => (await deliveriesOf(id)).total === 1);
    receiver.react(() => OK);
    await task('next');
    await until('the next one is told all the same', () => titles(received()).includes('next'));
    expect(titles(received())).to.deep.equal(['waits', 'next']);
    await set('true');
    await until('it is repeated', () => received().length === 3);
    expect(titles(received())).to.deep.equal(['waits', 'next', 'waits']);
    const run = await ask('POST', '/api/scheduler', { task_id: 'webhook_retry' });
    expect(run.status, JSON.stringify(run.body)).to.equal(200);
    expect(run.body.message).to.match(/^\d+ deliver(y waits|ies wait) to be repeated\.$/);
  });

  it('fail if the receiver hangs, cuts the connection or redirects', async () => {
    const { id, received } = await hook([]);
    const results: Record<string, unknown>[] = [];
    for (const reaction of [
      'hang',
      'drop',
      { status: 302, headers: { location: `http://127.0.0.1:${receiver.port}/elsewhere` } },
    ] as const) {
      receiver.react(() => reaction);
      const body = conforms(deliveryResult, await ask('POST', '/api/webhooks/test', { id }));
      results.push(body);
    }
    const [hung, dropped, redirected] = results;
    expect(hung).to.include({ success: false, status_code: null });
    expect(hung?.error).to.match(/did not respond within 400 ms/);
    expect(dropped).to.include({ success: false, status_code: null });
    expect(dropped?.error).to.match(/could not be reached \(ECONNRESET\)/);
    expect(redirected).to.include({ success: false, status_code: 302 });
    expect(redirected?.error).to.match(/redirect/);
    expect(received()).to.have.length(3);
    expect(receiver.requests.filter(({ path }) => path === '/elsewhere')).to.deep.equal([]);
    expect(await world.webhook(id)).to.include({
      last_status: 302,
      consecutive_failures: 0,
      enabled: true,
      failed_deliveries: 3,
    });
  });

  it('include a test that is sent even to a disabled webhook without subscriptions', async () => {
    const { id, received } = await hook([], { name: 'Tested' });
    await ask('PUT', '/api/webhooks', { id, enabled: false });
    const body = conforms(deliveryResult, await ask('POST', '/api/webhooks/test', { id }));
    expect(body).to.include({ success: true, status_code: 200, response_body: 'thanks', error: null });
    expect(body.response_time_ms).to.equal(body.duration_ms);
    expect(received()[0]?.body).to.deep.include({ event: 'test.ping' });
    expect(received()[0]?.body.data).to.include({ webhook_id: id, webhook_name: 'Tested', triggered_by: 'api' });
    const { deliveries } = await deliveriesOf(id);
    expect(deliveries[0]).to.include({ id: body.delivery_id, attempt: 0, parent_delivery_id: null });
    await world.refused('POST', '/api/webhooks/test', {}, 400, /id/);
    await world.refused('POST', '/api/webhooks/test', { id: 999_999 }, 404, /Webhook/);
  });

  it('can be repeated by hand with the same id, a new time and the next attempt number', async () => {
    const { id, received } = await hook([]);
    const first = (await ask('POST', '/api/webhooks/test', { id })).body.delivery_id;
    const body = conforms(deliveryResult, await ask('POST', '/api/webhooks/retry', { delivery_id: first }));
    expect(body.success).to.equal(true);
    const [one, two] = received();
    expect(two?.headers['webhook-id']).to.equal(one?.headers['webhook-id']);
    expect(two?.body.data).to.deep.equal(one?.body.data);
    const { deliveries } = await deliveriesOf(id);
    expect(deliveries[0]).to.include({ attempt: 1, is_retry: 1, parent_delivery_id: first, event_type: 'test.ping' });
    await world.refused('POST', '/api/webhooks/retry', {}, 400, /delivery_id/);
    await world.refused('POST', '/api/webhooks/retry', { delivery_id: 999_999_999 }, 404, /Delivery/);
  });

  it('do not record again what was erased from the repeated delivery meanwhile', async () => {
    const { id } = await hook([]);
    const first = (await ask('POST', '/api/webhooks/test', { id })).body.delivery_id;
    const { database } = world.world.service.core;
    receiver.react(() => 'hang');
    const before = receiver.requests.length;
    const repeated = ask('POST', '/api/webhooks/retry', { delivery_id: first });
    await until('the receiver has the repeated message', () => receiver.requests.length > before);
    await database.pool.query("UPDATE service.webhook_deliveries SET payload = '{}' WHERE id = $1", [first]);
    await repeated;
    const { deliveries } = await deliveriesOf(id);
    expect(deliveries.map(({ payload }: { payload: string }) => payload)).to.deep.equal(['{}', '{}']);
    receiver.react(() => OK);
  });

  it('are kept up to the latest 200', async () => {
    const { id } = await hook([]);
    const { database } = world.world.service.core;
    await database.pool.query(
      `INSERT INTO service.webhook_deliveries
           (webhook_id, workspace_id, message_id, event_type, payload, duration_ms, attempt, created_at)
         SELECT $1, 1, 'm' || n, 'test.ping', '{}', 1, 0, 1 FROM generate_series(1, 250) n`,
      [id],
    );
    const { delivery_id } = (await ask('POST', '/api/webhooks/test', { id })).body;
    const { deliveries, total } = await deliveriesOf(id, '&limit=500');
    expect([total, deliveries.length]).to.deep.equal([200, 200]);
    expect(deliveries[0].id).to.equal(delivery_id);
    expect((await deliveriesOf(id, '&limit=1&offset=199')).deliveries[0].id).to.equal(deliveries[199].id);
  });
});
