/** Secrets that clients put into configs, memories and reports: not in the log or the stream, and shown to admins only. */
import { expect } from 'chai';
import { operatorsRegistration } from '../../commands/agents/registration.ts';
import { agentsResponse } from '../../shared/contract/agents/agents.ts';
import { agentRegistered } from '../../shared/events/agents/registration.ts';
import { MASK } from '../../shared/secrets.ts';
import { fixture } from '../support/fixture.ts';
import { bodyOf } from '../support/service.ts';
import { type OpenStream, openStream } from '../support/stream.ts';
import { testOrigin } from '../support/world.ts';
import { startAgentsWorld } from '../support/worlds/agents.ts';

const PRIVATE = 'very-private';
let secrets = 0;
/** Another one each time; all of them are looked for in the log and in what others see. */
const secret = () => `${PRIVATE}-${++secrets}`;

describe('Agent secrets', () => {
  const world = fixture(startAgentsWorld);
  const { ask } = world;
  let viewer: string;
  let operator: string;
  before(async () => {
    await world.world.makeUser({ username: 'looks', role: 'viewer' });
    await world.world.makeUser({ username: 'works', role: 'operator' });
    viewer = await world.world.signIn('looks');
    operator = await world.world.signIn('works');
  });
  const watched = fixture(() => openStream(`${world.world.url}/api/events`, { cookie: viewer }));

  const configOf = async (id: number, as?: string) =>
    (await ask('GET', `/api/agents/${id}`, undefined, as)).body.agent.config;
  const made = async (config: object, as?: string) =>
    bodyOf(await ask('POST', '/api/agents', { name: world.fresh('sealed'), role: 'x', config }, as), 201).agent;

  it('in a config are shown only to admins, in every response', async () => {
    const config = {
      model: { primary: 'm', apiKey: secret() },
      endpoint: `https://ada:${secret()}@example.org`,
      variables: [{ name: 'API_KEY', value: secret() }],
      args: ['--token', secret(), '--verbose'],
    };
    const hidden = {
      model: { primary: 'm', apiKey: MASK },
      endpoint: `https://ada:${MASK}@example.org`,
      variables: [{ name: 'API_KEY', value: MASK }],
      args: ['--token', MASK, '--verbose'],
    };
    const agent = await made(config, operator);
    expect(agent.config, 'POST, as an operator').to.deep.equal(hidden);
    // Turn about: the kept answer of one must not be given to the other.
    for (let turn = 0; turn < 2; turn++) {
      expect(await configOf(agent.id), 'an admin').to.deep.equal(config);
      expect(await configOf(agent.id, viewer), 'a viewer').to.deep.equal(hidden);
      for (const [as, seen] of [
        [viewer, hidden],
        [world.world.adminKey, config],
      ] as const) {
        const list = await ask('GET', '/api/agents?limit=200', undefined, as);
        expect(agentsResponse.parse(list.body)).to.deep.equal(list.body);
        const [found] = list.body.agents.filter((one: { id: number }) => one.id === agent.id);
        expect(found.config).to.deep.equal(seen);
      }
    }
    const changed = await ask('PUT', `/api/agents/${agent.id}`, { role: 'y' }, operator);
    expect(changed.body.agent.config).to.deep.equal(hidden);
    await world.stream.until(() => world.framesOf('agent.updated', agent.id).length > 0);
    for (const type of ['agent.created', 'agent.updated']) {
      expect(world.framesOf(type, agent.id)[0]?.data.config, `${type} to an admin`).to.deep.equal(hidden);
      await watched.until(() => watched.frames.some((frame) => frame.type === type && frame.data.id === agent.id));
      const frame = watched.frames.find((one) => one.type === type && one.data.id === agent.id);
      expect(frame?.data.config, `${type} to a viewer`).to.deep.equal(hidden);
    }
  });

  it('stay unchanged if they are sent back masked', async () => {
    const kept = secret();
    const { id, name } = await made({ apiKey: kept, url: `https://a:${kept}@b`, other: 1 });
    const shown = await configOf(id, operator);
    expect((await ask('PUT', `/api/agents/${id}`, { config: { ...shown, other: 2 } }, operator)).status).to.equal(200);
    expect(await configOf(id)).to.deep.equal({ apiKey: kept, url: `https://a:${kept}@b`, other: 2 });
    expect((await ask('PUT', '/api/agents', { name, config: { ...shown, other: 3 } }, operator)).status).to.equal(200);
    expect(await configOf(id)).to.deep.equal({ apiKey: kept, url: `https://a:${kept}@b`, other: 3 });
    const merged = await ask('PUT', `/api/agents/${id}`, { gateway_config: { apiKey: MASK, more: 1 } }, operator);
    expect(merged.status, JSON.stringify(merged.body)).to.equal(200);
    expect(await configOf(id)).to.deep.equal({ apiKey: kept, url: `https://a:${kept}@b`, other: 3, more: 1 });
    const renewed = secret();
    await ask('PUT', `/api/agents/${id}`, { config: { apiKey: renewed } }, operator);
    expect(await configOf(id)).to.deep.equal({ apiKey: renewed });
  });

  it('are not replaced by a mask without a hidden value, which is rejected', async () => {
    const { id, name } = await made({ model: 'm' });
    for (const [method, path, body] of [
      ['POST', '/api/agents', { name: world.fresh(), role: 'x', config: { apiKey: MASK } }],
      ['POST', '/api/agents', { name: world.fresh(), role: 'x', gateway_config: { pwd: MASK } }],
      ['PUT', `/api/agents/${id}`, { config: { apiKey: MASK } }],
      ['PUT', `/api/agents/${id}`, { gateway_config: { apiKey: MASK } }],
      ['PUT', '/api/agents', { name, config: { url: `https://a:${MASK}@b` } }],
    ] as const)
      await world.refused(method, path, body, 400, /hidden value/);
    expect(await configOf(id)).to.deep.equal({ model: 'm' });
  });

  it('that are copied from the gateway configuration are encrypted and masked like others', async () => {
    const [own, agents] = [secret(), secret()];
    const document = {
      gateway: { auth: { token: own } },
      agents: { list: [{ id: 'synced', model: { apiKey: agents } }] },
    };
    expect((await ask('PUT', '/api/gateway-config', document)).status).to.equal(200);
    expect((await ask('POST', '/api/agents/sync')).body).to.include({ created: 1 });
    const { id } = await world.get('synced');
    expect(await configOf(id)).to.deep.equal({ model: { apiKey: agents } });
    expect(await configOf(id, viewer)).to.deep.equal({ model: { apiKey: MASK } });
  });

  it('in a memory are shown to admins and the agent itself, and stay unchanged if sent back masked', async () => {
    const { id } = await made({});
    const path = `/api/agents/${id}/memory`;
    const own = await world.world.makeKey(id, ['operator']);
    const token = secret();
    expect((await ask('PUT', path, { login: { token, user: 'ada' } }, own)).status).to.equal(200);
    const login = async (as?: string) => (await ask('GET', path, undefined, as)).body.login;
    expect(await login()).to.deep.equal({ token, user: 'ada' });
    expect(await login(own)).to.deep.equal({ token, user: 'ada' });
    expect(await login(viewer)).to.deep.equal({ token: MASK, user: 'ada' });
    for (const append of [true, false]) {
      const shown = await login(operator);
      expect((await ask('PUT', path, { append, login: { ...shown, user: 'bob' } }, operator)).status).to.equal(200);
      expect(await login()).to.deep.equal({ token, user: 'bob' });
    }
    await world.refused('PUT', path, { append: true, other: { token: MASK } }, 400, /memory\.other\.token/);
  });

  it('in adapter reports are masked on the stream', async () => {
    const values = [secret(), secret(), secret()];
    const told = [
      { action: 'register', payload: { agentId: 'x1', name: 'x', metadata: { token: values[0], shown: 'shown' } } },
      { action: 'heartbeat', payload: { agentId: 'x1', metrics: { authorization: values[1], load: 1 } } },
      { action: 'report', payload: { agentId: 'x1', taskId: 't', output: { password: values[2], done: true } } },
    ];
    for (const body of told)
      expect((await ask('POST', '/api/adapters', { framework: 'crewai', ...body })).status).to.equal(200);
    const last = (stream: OpenStream) => stream.frames.find((frame) => frame.type === 'task.updated');
    await watched.until(() => last(watched) !== undefined);
    await world.stream.until(() => last(world.stream) !== undefined);
    expect(last(watched)?.data.output).to.deep.equal({ password: MASK, done: true });
    expect(last(world.stream)?.data.output).to.deep.equal({ password: MASK, done: true });
    const created = (stream: OpenStream) =>
      stream.frames.find((frame) => frame.type === 'agent.created' && frame.data.id === 'x1')?.data;
    expect(created(watched)).to.include({ token: MASK, shown: 'shown', name: 'x', status: 'online' });
    expect(created(world.stream)).to.include({ token: MASK, shown: 'shown' });
  });

  it('do not interfere with a config that looks like an encrypted value, even after a restart', async () => {
    for (const config of [
      { sealed: 1, person: 'user:1', box: 'AAAA' },
      { sealed: 'secrets', person: 'user:1', box: 'AAAA', shown: { sealed: 0 } },
      { deep: { sealed: 0 }, secret: secret() },
    ]) {
      const { id } = await made(config);
      expect(await configOf(id)).to.deep.equal(config);
      // From the log itself, as another process reads it.
      const stream = `agent-1-${id}`;
      for await (const [event] of world.world.service.core.eventLog.readStream(stream)) {
        const fresh = structuredClone(event as NonNullable<typeof event>);
        expect((await world.world.service.core.store.decode(fresh)).data.config).to.deep.equal(config);
      }
    }
  });

  it('from before encryption are read and masked', async () => {
    const { commands, eventLog, store } = world.world.service.core;
    const agentId = await commands.counters.take('agent');
    const clear = { apiKey: 'old-and-clear', model: 'm' };
    const registration = operatorsRegistration({ name: world.fresh('old'), role: 'x', config: { model: 'm' } });
    const [event] = await store.prepare([agentRegistered.draft({ agent_id: agentId, ...registration })], testOrigin);
    if (!event) throw new Error('nothing was prepared');
    await eventLog.append(
      `agent-1-${agentId}`,
      [structuredClone({ ...event, data: { ...event.data, config: clear } })],
      'none',
    );
    // A write afterwards is visible only when the read models have passed it.
    await made({});
    expect(await configOf(agentId)).to.deep.equal(clear);
    expect(await configOf(agentId, viewer)).to.deep.equal({ apiKey: MASK, model: 'm' });
  });

  it('appear neither in the raw log nor in anything that a viewer sees', async () => {
    expect(secrets).to.be.above(10);
    expect(await world.world.rawLog()).not.to.include(PRIVATE);
    for (const path of ['/api/agents?limit=200', '/api/activities?limit=200'])
      expect(JSON.stringify((await ask('GET', path, undefined, viewer)).body), path).not.to.include(PRIVATE);
    expect(JSON.stringify((await ask('GET', '/api/audit?limit=200')).body)).not.to.include(PRIVATE);
    expect(JSON.stringify(watched.frames)).not.to.include(PRIVATE);
  });
});
