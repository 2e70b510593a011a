/** The log over HTTP: as it is stored, filtered, page by page, for admins of the deployment. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { historyEventSchema, historyEventsResponse } from '../../../shared/contract/history/events.ts';
import type { LoggedEvent } from '../../../shared/ports/event-log.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

type Shown = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly type: string;
  readonly stream: string;
  readonly at: number;
  readonly position: number;
  readonly actor: { readonly type: string; readonly id: number; readonly name: string };
  readonly meta: Readonly<Record<string, unknown>> & { readonly at: number };
};

describe('/api/history/events', function () {
  this.timeout(120_000);
  const world = fixture(startAuthWorld);

  let all: LoggedEvent[];
  /** Each use of the global key is an event itself. */
  let admin: string;
  before(async () => {
    const as = world.adminKey;
    for (const name of ['scout', 'miner', 'baker'])
      await world.ask('POST', '/api/agents', { as, body: { name, role: 'x', config: { api_key: 'geheim-1' } } });
    const resi = await world.makeSession({ username: 'resi', role: 'admin', email: 'resi@example.org' });
    admin = await world.makeSession({ username: 'vera', role: 'admin' });
    await world.ask('PUT', '/api/agents/1', { as: resi, body: { role: 'y' } });
    all = [];
    for await (const page of world.service.core.eventLog.readAll()) all.push(...page);
  });

  const get = async (query: string, as: string | undefined = admin) =>
    world.ask('GET', `/api/history/events${query}`, { as });
  const events = async (query: string): Promise<readonly Shown[]> => {
    const body = conforms(historyEventsResponse, await get(query));
    return body.events;
  };

  it('shows the whole log as stored, page by page', async () => {
    const shown: Shown[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const { body } = await get(`?limit=7&after=${after}`);
      expect(body.events.length).to.be.within(1, 7);
      shown.push(...body.events);
      after = body.next_after;
    }
    expect(shown.length).to.be.at.least(all.length);
    for (const [index, event] of all.entries()) {
      const { id, type, stream, revision, position, data, meta } = event;
      const at = Math.floor((meta.at as number) / 1_000);
      expect(shown[index]).to.deep.equal({
        id,
        type,
        stream,
        revision,
        position,
        data,
        meta,
        index,
        at,
        actor: meta.actor,
      });
    }
    expect(JSON.stringify(shown)).not.to.include('resi@example.org').and.not.to.include('geheim-1');
  });

  it('shows an event immediately after it is written, every time', async () => {
    for (let n = 0; n < 20; n++) {
      const { body } = await world.ask('POST', '/api/agents', {
        as: admin,
        body: { name: `late-${n}`, role: 'x' },
      });
      const found = await events(`?stream=agent-1-${body.agent.id}`);
      expect(found.map(({ type }) => type)).to.deep.equal(['AgentRegistered']);
    }
  });

  it('filters by stream, type, actor, correlation and causation', async () => {
    const of = (isIt: (event: LoggedEvent) => boolean) => all.filter(isIt).map(({ id }) => id);
    const ids = async (query: string) =>
      (await events(`${query}&limit=1000`)).map(({ id }) => id).filter((id) => all.some((one) => one.id === id));
    const stream = 'agent-1-1';
    expect(await ids(`?stream=${stream}`)).to.deep.equal(of((event) => event.stream === stream));
    expect(await ids('?type=AgentRegistered')).to.deep.equal(of(({ type }) => type === 'AgentRegistered'));
    const resi = all.find(({ meta }) => (meta.actor as Shown['actor']).name === 'resi')?.meta.actor as Shown['actor'];
    const byResi = of(({ meta }) => (meta.actor as Shown['actor']).name === 'resi');
    expect(byResi.length).to.be.at.least(2);
    expect(await ids('?actor=resi')).to.deep.equal(byResi);
    expect(await ids(`?actor=user:${resi.id}`)).to.deep.equal(byResi);
    const registered = all.findLast(({ type }) => type === 'AgentRegistered') as LoggedEvent;
    const correlationId = registered.meta.correlationId as string;
    const together = of(({ meta }) => meta.correlationId === correlationId);
    expect(together.length).to.be.at.least(2);
    expect(await ids(`?correlation=${correlationId}`)).to.deep.equal(together);
    expect(await ids(`?causation=${correlationId}`)).to.deep.equal(together);
    expect(await ids(`?causation=${correlationId}&type=AgentRegistered`)).to.have.length(1);
    expect(await ids('?type=Nothing')).to.deep.equal([]);
    expect(await ids('?actor=&type=')).to.have.length(all.length);
  });

  it('filters by time, in both formats', async () => {
    const times = all.map(({ meta }) => meta.at as number);
    const middle = times[Math.floor(times.length / 2)] as number;
    const found = async (query: string) => (await events(`${query}&limit=1000`)).map(({ meta }) => meta.at);
    const iso = new Date(middle).toISOString();
    expect(await found(`?until=${iso}`)).to.deep.equal(times.filter((at) => at <= middle));
    const since = await found(`?since=${iso}`);
    expect(since.slice(0, 3)).to.deep.equal(times.filter((at) => at >= middle).slice(0, 3));
    const second = Math.floor(middle / 1_000);
    const within = (at: number) => Math.floor(at / 1_000) === second;
    expect((await found(`?since=${second}&until=${second}`)).filter((at) => times.includes(at))).to.deep.equal(
      times.filter(within),
    );
    expect(await found('?until=2020-01-01T00:00:00%2B02:00')).to.deep.equal([]);
  });

  it('returns one event by its id, in any letter case', async () => {
    const { id, type } = all[3] as LoggedEvent;
    const reply = await world.ask('GET', `/api/history/events/${id.toUpperCase()}`, { as: admin });
    expect(historyEventSchema.parse(reply.body)).to.deep.equal(reply.body);
    expect(reply.body).to.include({ id, type, index: 3 });
  });

  it('decrypts personal fields on request, but no secrets; those of erased people are null', async () => {
    const created = all.find(({ type, data }) => type === 'UserCreated' && data.username === 'resi') as LoggedEvent;
    const path = `/api/history/events/${created.id}`;
    const sealed = (await world.ask('GET', path, { as: admin })).body;
    expect(sealed.data.email).to.have.keys('sealed', 'person', 'box');
    const open = (await world.ask('GET', `${path}?open=1`, { as: admin })).body;
    expect(open.data.email).to.equal('resi@example.org');
    expect(open.meta.ip).to.equal('192.0.2.1');
    expect({ ...open, data: sealed.data, meta: sealed.meta }).to.deep.equal(sealed);
    const agents = await events('?type=AgentRegistered&open=1&limit=1');
    expect(JSON.stringify(agents)).to.include('sealed":"secrets').and.not.to.include('geheim-1');
    await world.service.core.personKeys.erase(sealed.data.email.person);
    const erased = (await world.ask('GET', `${path}?open=1`, { as: admin })).body;
    expect(erased.data.email).to.equal(null);
  });

  it('rejects a value that is out of range or malformed, and names it', async () => {
    const head = await world.service.core.eventLog.head();
    const cases: [string, RegExp][] = [
      ['?after=99999999999', /^after: must be a position from 0 to \d+/],
      ['?after=-1', /^after: must be a position of the log/],
      ['?after=x', /^after/],
      ['?since=yesterday', /^since: must be a time: RFC 3339/],
      ['?since=2026-02-30T99:00:00Z', /^since/],
      ['?until=2026-01-01', /^until/],
      ['?stream=%00', /^stream/],
    ];
    for (const [query, says] of cases) {
      const { status, body } = await get(query);
      expect(status, query).to.equal(400);
      expect(body.error).to.match(says);
    }
    expect((await get(`?after=${head}`)).body).to.deep.equal({ events: [], next_after: null });
    const one = (id: string) => world.ask('GET', `/api/history/events/${id}`, { as: admin });
    expect((await one('x')).status).to.equal(400);
    expect((await one(randomUUID())).status).to.equal(404);
  });

  it('returns fewer events per page if they are large', async () => {
    const soul_content = 'text '.repeat(9_000);
    const first = (await events('?type=AgentSoulChanged')).length;
    for (let n = 0; n < 5; n++)
      await world.ask('PUT', '/api/agents/2/soul', {
        as: admin,
        body: { soul_content: `${n} ${soul_content.repeat(4)}` },
      });
    expect((await events('?type=AgentSoulChanged')).length).to.be.at.least(first);
  });
});
