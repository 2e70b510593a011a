import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { pino } from 'pino';
import { createSecurityEvents } from '../../api/auth/security-events.ts';
import type { RequestContext } from '../../api/http/context.ts';
import type { Commands } from '../../commands/handler.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import type { Origin } from '../../shared/events/metadata.ts';
import type { Identity } from '../../shared/identity.ts';

const caller = (id: number): Identity => ({
  kind: 'user',
  id,
  username: `user${id}`,
  displayName: '',
  role: 'viewer',
  seesSecrets: false,
  tenant: 1,
  workspace: 2,
  agentName: null,
  agentId: null,
  session: null,
});

const context = (identity: Identity | null, ip = '192.0.2.1') =>
  ({
    req: { method: 'GET', headers: {} } as IncomingMessage,
    id: 'request',
    ip,
    route: '/api/things',
    identity,
  }) as unknown as RequestContext;

function recording(record: (draft: EventDraft) => Promise<void> = () => Promise.resolve()) {
  const events: { draft: EventDraft; origin: Origin }[] = [];
  let at = 1_700_000_000_000;
  const commands = {
    async record(_stream: string, context: { origin: Origin }, drafts: readonly EventDraft[]) {
      const draft = drafts[0] as EventDraft;
      await record(draft);
      events.push({ draft, origin: context.origin });
    },
  } as unknown as Commands;
  return {
    events,
    securityEvents: createSecurityEvents({ commands, log: pino({ level: 'silent' }), now: () => at }),
    pass(ms: number) {
      at += ms;
    },
  };
}

describe('security event recorder', () => {
  it('writes the first event at once and counts the following ones', async () => {
    const { events, securityEvents } = recording();
    for (let i = 0; i < 5; i++) securityEvents.accessDenied(context(caller(1)), 'GET /api/things', 'admin');
    await new Promise(setImmediate);
    expect(events.map(({ draft }) => draft.data)).to.deep.equal([
      { route: 'GET /api/things', needed: 'admin', count: 1 },
    ]);
    expect(events[0]?.origin).to.deep.include({ workspace: 2, actor: { type: 'user', id: 1, name: 'user1' } });
    await securityEvents.drain();
    expect(events.map(({ draft }) => (draft.data as { count: number }).count)).to.deep.equal([1, 4]);
  });

  it('separates callers and routes, and identifies anonymous callers by address', async () => {
    const { events, securityEvents } = recording();
    securityEvents.accessDenied(context(caller(1)), 'GET /a', 'admin');
    securityEvents.accessDenied(context(caller(1)), 'GET /b', 'admin');
    securityEvents.accessDenied(context(caller(2)), 'GET /a', 'admin');
    securityEvents.rateLimitHit(context(null, '192.0.2.1'), 'login');
    securityEvents.rateLimitHit(context(null, '192.0.2.2'), 'login');
    securityEvents.rateLimitHit(context(null, '192.0.2.2'), 'login');
    await securityEvents.drain();
    expect(events.map(({ draft }) => draft.type).sort()).to.deep.equal([
      'AccessDenied',
      'AccessDenied',
      'AccessDenied',
      'RateLimitHit',
      'RateLimitHit',
      'RateLimitHit',
    ]);
  });

  it('separates kinds of attack, and names the kind', async () => {
    const { events, securityEvents } = recording();
    for (const rules of [['prompt-override'], ['exfil-send-data'], ['prompt-override']])
      securityEvents.injectionRefused(context(caller(1)), rules);
    await securityEvents.drain();
    const said = events.map(({ draft }) => draft.data as { rules: string[]; count: number });
    expect(said.map(({ rules, count }) => `${rules} ${count}`).sort()).to.deep.equal([
      'exfil-send-data 1',
      'prompt-override 1',
      'prompt-override 1',
    ]);
  });

  it('records the use of the global key once per address', async () => {
    const { events, securityEvents } = recording();
    const key: Identity = { ...caller(0), kind: 'global-key', username: 'api', role: 'admin', workspace: 1 };
    securityEvents.globalKeyUsed(context(null, '192.0.2.1'), key);
    securityEvents.globalKeyUsed(context(null, '192.0.2.2'), key);
    securityEvents.globalKeyUsed(context(null, '192.0.2.1'), key);
    await new Promise(setImmediate);
    expect(events).to.have.length(2);
    expect(events[0]?.origin.actor).to.deep.equal({ type: 'api', id: 0, name: 'api' });
    await securityEvents.drain();
  });

  it('limits its memory and concurrent writes, and never throws', async () => {
    let open = 0;
    let most = 0;
    const { securityEvents } = recording(async () => {
      most = Math.max(most, ++open);
      await new Promise(setImmediate);
      open--;
      throw new Error('the log is away');
    });
    for (let i = 0; i < 7_000; i++) securityEvents.accessDenied(context(caller(i)), 'GET /a', 'admin');
    await securityEvents.drain();
    expect(most).to.be.at.most(100);
    expect(open).to.equal(0);
  });

  it('starts afresh after it has been drained', async () => {
    const { events, securityEvents } = recording();
    securityEvents.accessDenied(context(caller(1)), 'GET /a', 'admin');
    await securityEvents.drain();
    securityEvents.accessDenied(context(caller(1)), 'GET /a', 'admin');
    await securityEvents.drain();
    expect(events).to.have.length(2);
  });
});
