/** Webhooks through HTTP: configuration, deliveries, tests, retries. One service and one receiver for all. */
import { expect } from 'chai';
import { webhookDecider, webhookStream } from '../../../commands/webhooks/webhooks.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { newWebhookResponse, webhookChangedResponse } from '../../../shared/contract/webhooks/webhooks.ts';
import { allCaughtUp } from '../../support/caught-up.ts';
import { fixture } from '../../support/fixture.ts';
import { startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startWebhooksWorld } from '../../support/worlds/webhooks.ts';

const PATH = '/api/webhooks';

describe('webhooks', () => {
  const receiver = fixture(startReceiver);
  const world = fixture(() => startWebhooksWorld(receiver));
  const { webhooks: list, webhook: find, createWebhook: create } = world;

  describe('a webhook', () => {
    it('has a secret that is shown once, and receives all events by default', async () => {
      const before = (await list()).length;
      const { id, secret, message, ...rest } = conforms(
        newWebhookResponse,
        await world.ask('POST', PATH, { name: ' Ops ', url: `${receiver.url}/quiet` }),
      );
      expect(rest).to.deep.equal({
        name: 'Ops',
        url: `${receiver.url}/quiet`,
        events: ['*'],
        format: 'json',
        enabled: true,
      });
      expect(secret).to.match(/^[0-9a-f]{64}$/);
      expect(message).to.be.a('string').that.includes('secret');
      const { created_at, updated_at, created_by, ...shown } = await find(id);
      expect(shown).to.deep.include({
        name: 'Ops',
        secret: `••••••${secret.slice(-4)}`,
        events: ['*'],
        format: 'json',
        enabled: true,
        consecutive_failures: 0,
        circuit_open: false,
        failed_deliveries: 0,
        workspace_id: 1,
      });
      expect(created_by).to.equal('api');
      expect([created_at, updated_at]).to.satisfy(([a, b]: number[]) => Number.isInteger(a) && (b ?? 0) >= (a ?? 0));
      const all = await list();
      expect(all.length).to.equal(before + 1);
      expect(all[0].id, 'newest first').to.equal(id);
      expect(JSON.stringify(all)).not.to.include(secret);
      expect((await world.ask('DELETE', PATH, { id })).body).to.deep.equal({ success: true, deleted: 1 });
    });

    it('without a secret is not signed', async () => {
      const made = await create({ generate_secret: false });
      expect(made.secret).to.equal(null);
      expect((await find(made.id)).secret).to.equal(null);
    });

    it('is notified only of events that it subscribes to', async () => {
      const chosen = await create({ url: `${receiver.url}/awake`, events: ['activity.agent_created'] });
      const other = await create({ url: `${receiver.url}/asleep`, events: ['activity.task_created'] });
      const seen = async (id: number) => {
        const { rows } = await world.world.service.core.database.pool.query(
          'SELECT seen FROM service.webhooks WHERE webhook_id = $1',
          [id],
        );
        return (rows[0] as { seen: number }).seen;
      };
      const agents = `${schemaOf(activitiesProjection)}.activities`;
      /** Creates an agent, and waits until both webhooks were considered and one was notified. */
      const createTold = async (times: number) => {
        const { id } = await world.create();
        await allCaughtUp(world.world.service.core);
        const { rows } = await world.world.service.core.database.pool.query(
          `SELECT position FROM ${agents} WHERE type = 'agent_created' AND entity_id = $1`,
          [id],
        );
        const { position } = rows[0] as { position: number };
        // Deliveries read the log for themselves, so they may be ahead of what wakes them.
        await until('it is wanted', async () => (await seen(chosen.id)) >= position);
        const told = () => receiver.requests.filter(({ path }) => path.endsWith('/awake')).length;
        await until('it has been told', () => told() === times);
      };
      // At first, one page of events may hold the webhooks' own creation, too, which concerns both. Of these the worker
      // claims the one that has waited longer before it claims the first again.
      await createTold(1);
      await createTold(2);
      const before = await seen(other.id);
      await createTold(3);
      expect(await seen(other.id), 'of the one that has not chosen it').to.equal(before);
      // Types that it subscribes to later are delivered from then on.
      await world.ask('PUT', PATH, { id: other.id, events: ['activity.agent_created'] });
      await world.create();
      await until('it is told, too', () => receiver.requests.some(({ path }) => path.endsWith('/asleep')));
      for (const { id } of [chosen, other]) await world.ask('DELETE', PATH, { id });
    });

    it('has neither its secret nor its URL in plain text in the log or the tables', async () => {
      const { id, secret } = await create({ url: `${receiver.url}?token=hidden-in-the-log` });
      const { secret: next } = (await world.ask('PUT', PATH, { id, regenerate_secret: true })).body;
      const raw = await world.world.rawLog();
      for (const text of [secret, next, 'hidden-in-the-log']) expect(raw).not.to.include(text);
      const { database } = world.world.service.core;
      const { pool } = database;
      await allCaughtUp(world.world.service.core);
      for (const table of ['webhooks_v1.webhooks', 'service.webhooks', 'service.webhook_deliveries']) {
        const { rows } = await pool.query(`SELECT row_to_json(t)::text AS row FROM ${table} t`);
        for (const one of [secret, next]) expect(JSON.stringify(rows), table).not.to.include(one);
      }
    });

    it('is rejected if incomplete or invalid, with a message that states the correction', async () => {
      const ok = { name: 'n', url: 'https://example.org' };
      for (const [fields, says] of [
        [{ name: '' }, /name/],
        [{ name: 'n'.repeat(201) }, /name/],
        [{ url: undefined }, /url/],
        [{ url: 'nowhere' }, /absolute URL/],
        [{ url: 'ftp://example.org' }, /https:\/\/ or http:\/\//],
        [{ url: 'http://10.1.2.3/' }, /not a public address/],
        [{ url: 'http://169.254.169.254/latest' }, /metadata of a machine/],
        [{ events: 'task' }, /events/],
        [{ events: [''] }, /events/],
        [{ events: Array.from({ length: 51 }, () => 'x') }, /events/],
        [{ events: ['x'.repeat(201)] }, /events/],
        [{ generate_secret: 'yes' }, /generate_secret/],
        [{ format: 'xml' }, /format/],
      ] as const)
        await world.refused('POST', PATH, { ...ok, ...fields }, 400, says);
      await world.refused('POST', PATH, undefined, 400, /body required/);
      await world.refused('DELETE', PATH, undefined, 400, /body required/);
      await world.refused('DELETE', `${PATH}?id=999999`, undefined, 404, /Webhook/);
      await world.refused('PUT', PATH, { name: 'n' }, 400, /id/);
      const { id } = await create();
      await world.refused('PUT', PATH, { id, url: 'http://10.1.2.3/' }, 400, /not a public address/);
      await world.refused('DELETE', PATH, {}, 400, /id/);
      for (const method of ['PUT', 'DELETE']) await world.refused(method, PATH, { id: 999_999 }, 404, /Webhook/);
    });

    it('PUT updates the given fields, and always the time of the last change', async () => {
      const { id, secret } = await create();
      const changed = await world.ask('PUT', PATH, {
        id: String(id),
        name: 'New',
        url: `${receiver.url}/new`,
        events: ['agent.error'],
        enabled: false,
      });
      conforms(webhookChangedResponse, changed);
      expect(changed.body).to.deep.equal({ success: true });
      expect(await find(id)).to.deep.include({
        name: 'New',
        url: `${receiver.url}/new`,
        events: ['agent.error'],
        enabled: false,
      });
      const body = conforms(webhookChangedResponse, await world.ask('PUT', PATH, { id, regenerate_secret: true }));
      expect(body.secret)
        .to.match(/^[0-9a-f]{64}$/)
        .and.not.equal(secret);
      expect((await find(id)).secret).to.equal(`••••••${body.secret.slice(-4)}`);
      expect((await world.ask('PUT', PATH, { id })).body).to.deep.equal({ success: true });
      await world.ask('PUT', PATH, { id, reset_circuit: true, enabled: false });
      expect((await find(id)).enabled, 'reset_circuit beats enabled').to.equal(true);
    });

    it('resets its failures before it is enabled, so that no worker counts on from them', async () => {
      const { id } = await create();
      await world.ask('PUT', PATH, { id, enabled: false });
      const { commands, database } = world.world.service.core;
      const { pool } = database;
      const query = pool.query.bind(pool);
      const enabledAt: boolean[] = [];
      pool.query = (async (...args: Parameters<typeof query>) => {
        if (String(args[0]).includes('SET failures = 0'))
          enabledAt.push((await commands.load(webhookDecider, webhookStream(1, id))).state.enabled);
        return query(...args);
      }) as typeof pool.query;
      try {
        await world.ask('PUT', PATH, { id, reset_circuit: true });
      } finally {
        pool.query = query;
      }
      expect(enabledAt).to.deep.equal([false]);
      expect((await find(id)).enabled).to.equal(true);
      await world.ask('DELETE', PATH, { id });
    });
  });
});
