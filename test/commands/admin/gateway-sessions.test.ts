/** Sessions at the primary gateway: what is taken from its answers, and how often it is asked. */
import { expect } from 'chai';
import { controlAtGateway, createGatewaySessions, sessionsIn } from '../../../commands/admin/gateway-sessions.ts';
import { addGateway } from '../../../commands/admin/gateways.ts';
import { controlSession } from '../../../commands/sessions.ts';
import { gatewaySessionRecord } from '../../../queries/sessions.ts';
import { GatewayError, type GatewayRequest, type GatewayResponse } from '../../../shared/ports/admin/gateways.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { outcomeOf } from '../../support/kit.ts';
import { testOrigin } from '../../support/world.ts';

const heard = (sessions: unknown, status = 200): GatewayResponse => ({ status, body: { sessions } });
const only = (session: object) => sessionsIn(heard([{ key: 'agent:ada:main', ...session }]))[0];

describe('commands: sessions at a gateway', () => {
  it('missing fields have defaults', () => {
    expect(only({})).to.deep.equal({
      id: 'ada:agent:ada:main',
      key: 'agent:ada:main',
      agent: 'ada',
      kind: 'unknown',
      model: 'unknown',
      channel: 'unknown',
      label: null,
      settings: {},
      usedTokens: 0,
      contextTokens: 35_000,
      updatedAt: 0,
    });
    expect(sessionsIn(heard([{ key: 'k' }]))[0]).to.include({ agent: 'unknown', id: 'unknown:k' });
  });

  it('malformed fields count as missing', () => {
    const odd = { sessionId: 5, agent: ' ', chatType: {}, model: null, totalTokens: -1, contextTokens: 0, label: [] };
    expect(only({ ...odd, updatedAt: '2026', thinkingLevel: 3 })).to.deep.equal(only({}));
    expect(only({ updatedAt: 8_640_000_000_000_001 })).to.deep.equal(only({}));
  });

  it('invalid entries are skipped; a response that is not a list is ignored', () => {
    const keys = sessionsIn(
      heard([null, 'x', [], {}, { key: '' }, { key: 'x'.repeat(201) }, { key: '..' }, { key: 'good' }]),
    );
    expect(keys.map(({ key }) => key)).to.deep.equal(['good']);
    for (const body of [undefined, null, 'x', [], {}, { sessions: {} }])
      expect(sessionsIn({ status: 200, body }), JSON.stringify(body)).to.deep.equal([]);
    expect(sessionsIn(heard([{ key: 'good' }], 500))).to.deep.equal([]);
  });

  it('each session appears once, as last updated; text lengths and the number of sessions are limited', () => {
    const twice = [
      { key: 'a', sessionId: 's', updatedAt: 1 },
      { key: 'b', sessionId: 's', updatedAt: 3 },
      { key: 'c', sessionId: 't', updatedAt: 2 },
    ];
    expect(sessionsIn(heard(twice)).map(({ key }) => key)).to.deep.equal(['b', 'c']);
    const many = Array.from({ length: 3_000 }, (_, n) => ({ key: `k${n}`, updatedAt: n, label: 'x'.repeat(1_000) }));
    const listed = sessionsIn(heard(many));
    expect(listed).to.have.length(2_000);
    expect([listed[0]?.key, listed[0]?.label?.length]).to.deep.equal(['k2999', 200]);
  });

  it('the record shows how full the context is, how old it is and whether it is active', () => {
    const session = only({ totalTokens: 12_345, contextTokens: 35_000, updatedAt: 1_000_000_000 });
    if (!session) throw new Error('there is no session');
    const at = (now: number) => gatewaySessionRecord(session, now);
    expect(at(1_000_000)).to.include({
      tokens: '12k/35k (35%)',
      age: 'now',
      active: true,
      lastActivity: 1_000_000_000,
    });
    expect(at(1_000_000 + 59 * 60)).to.include({ age: '59m', active: true });
    expect(at(1_000_000 + 60 * 60)).to.include({ age: '1h', active: false });
    const unknown = only({});
    if (!unknown) throw new Error('there is no session');
    expect(gatewaySessionRecord(unknown, 1_000_000)).to.include({ age: '-', active: false, lastActivity: 0 });
  });

  async function withGateway() {
    const memory = agentsMemory();
    const gateway = { name: 'main', url: 'http://gate', token: 'secret', is_primary: true };
    await addGateway(memory.commands, memory.context(), gateway);
    const asked: GatewayRequest[] = [];
    let answer: () => Promise<GatewayResponse> = async () => heard([{ key: 'good' }]);
    const gateways = {
      call(_: unknown, request: GatewayRequest) {
        asked.push(request);
        return answer();
      },
    };
    return {
      ...memory,
      asked,
      gateways,
      answers(next: () => Promise<GatewayResponse>) {
        answer = next;
      },
    };
  }

  it('concurrent requests share one gateway call, repeated after five seconds or for another version', async () => {
    const { commands, gateways, asked, answers } = await withGateway();
    let now = 1_000;
    const sessions = createGatewaySessions({ commands, gateways, now: () => now });
    let free = () => {};
    const held = new Promise<void>((resolve) => {
      free = resolve;
    });
    answers(async () => {
      await held;
      return heard([{ key: 'good' }]);
    });
    const many = Array.from({ length: 20 }, () => sessions.list('1.1'));
    free();
    for (const list of await Promise.all(many)) expect(list?.map(({ key }) => key)).to.deep.equal(['good']);
    expect(asked).to.deep.equal([{ method: 'GET', path: '/api/sessions', timeoutMs: 2_000 }]);
    now += 4_999;
    await sessions.list('1.1');
    expect(asked).to.have.length(1);
    now += 1;
    await sessions.list('1.1');
    expect(asked).to.have.length(2);
    await sessions.list('1.2');
    expect(asked, 'changed since').to.have.length(3);
  });

  it('a gateway that does not respond has no sessions, and is not called for each request', async () => {
    const { commands, gateways, asked, answers } = await withGateway();
    const sessions = createGatewaySessions({ commands, gateways, now: () => 1_000 });
    answers(async () => {
      throw new GatewayError('away', true);
    });
    expect(await sessions.list('1.1')).to.equal(undefined);
    expect(await sessions.list('1.1')).to.equal(undefined);
    expect(asked).to.have.length(1);
  });

  it('an unregistered session is forwarded to the gateway, for the default tenant only', async () => {
    const { commands, context, gateways, asked, events } = await withGateway();
    const pause = { session: 'agent:ada:main', action: 'pause', value: null } as const;
    const elsewhere = { origin: { ...testOrigin, tenant: 2, workspace: 2 } };
    expect(await outcomeOf(controlSession(commands, elsewhere, gateways, pause))).to.equal('404');
    expect([asked.length, events('GatewaySessionControlled').length]).to.deep.equal([0, 0]);
    await controlSession(commands, context(), gateways, pause);
    const path = '/api/sessions/agent%3Aada%3Amain/control';
    expect(asked).to.deep.equal([{ method: 'POST', path, body: { action: 'pause' } }]);
    const data = { gateway_id: 1, gateway_name: 'main', session_id: pause.session, action: 'pause', value: null };
    expect(events('GatewaySessionControlled')[0]).to.deep.include({ stream: 'gateway_sessions-1', data });
  });

  it('an action that the gateway did not perform is not recorded', async () => {
    const { commands, context, gateways, answers, events } = await withGateway();
    const gateway = { id: 1, name: 'main', url: 'http://gate', bare: false, token: null, is_primary: true };
    const asked = { session: 's', action: 'delete', value: null } as const;
    const outcome = () => outcomeOf(controlAtGateway(commands, context(), { gateway, gateways }, asked));
    for (const [answer, says] of [
      [{ status: 404, body: {} }, '404'],
      [{ status: 500, body: { error: 'broken' } }, '500'],
      [{ status: 302, body: undefined }, '500'],
      [{ status: 200, body: { ok: false, error: 'not now' } }, '500'],
    ] as const) {
      answers(async () => answer);
      expect(await outcome(), JSON.stringify(answer)).to.equal(says);
    }
    answers(async () => {
      throw new GatewayError('away', false);
    });
    expect(await outcome()).to.equal('500');
    expect(events('GatewaySessionControlled')).to.deep.equal([]);
  });
});
