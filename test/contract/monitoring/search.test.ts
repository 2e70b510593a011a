/** Search: what is found, how it is shown and ordered, and who finds it. */
import { expect } from 'chai';
import { searchResponse } from '../../../shared/contract/monitoring/search.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, call, startTestService } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { makeAgent, makeTask, makeUser } from '../../support/worlds/monitoring.ts';

interface Result {
  readonly type: string;
  readonly id: number;
  readonly title: string;
  readonly [field: string]: unknown;
}

describe('GET /api/search', () => {
  const base = fixture(startTestService);

  let agent: { id: number };
  let task: number;
  before(async () => {
    agent = await makeAgent(base, 'Quokka 100%_x');
    await makeAgent(base, 'Quokka 100abx');
    await call(base, 'POST', `/api/agents/${agent.id}/heartbeat`, {});
    const content = `${'a'.repeat(60)} the QUOKKA likes leaves ${'b'.repeat(90)}`;
    await call(base, 'POST', '/api/agents/message', { from: 'ada', to: 'Quokka 100%_x', content });
    task = await makeTask(base, {
      title: 'Feed the animals',
      description: 'First the quokka.',
      assigned_to: 'zoe',
    });
  });

  it('finds pipelines by name and description', async () => {
    const template = { name: 'step', task_prompt: 'Look around.' };
    const { id } = (await call(base, 'POST', '/api/workflows', template)).body.template;
    const steps = [{ template_id: id }, { template_id: id }];
    const made = await call(base, 'POST', '/api/pipelines', { name: 'Bilby', description: 'in the desert', steps });
    expect(made.status, JSON.stringify(made.body)).to.equal(201);
    const [byName, byDescription] = [await search('q=bilby&type=pipeline'), await search('q=DESERT&type=pipelines')];
    expect(byName.results.map(({ title, excerpt, relevance }) => [title, excerpt, relevance])).to.deep.equal([
      ['Bilby', 'in the desert', 2],
    ]);
    expect(byDescription.results.map(({ title, relevance }) => [title, relevance])).to.deep.equal([['Bilby', 1]]);
  });

  const search = async (query: string, key = base.adminKey) =>
    conforms(searchResponse, await call(base, 'GET', `/api/search?${query}`, undefined, { 'x-api-key': key })) as {
      query: string;
      count: number;
      total: number;
      results: Result[];
    };
  const ofType = (results: readonly Result[], type: string) => results.filter((one) => one.type === type);

  it('finds records of every kind, best first, in the format of their kind', async () => {
    const { query, count, total, results } = await search('q=%20quokka%20');
    expect({ query, count, total }).to.deep.equal({ query: 'quokka', count: results.length, total: results.length });
    expect(results.map(({ relevance }) => relevance)).to.deep.equal(
      results.map(({ relevance }) => relevance).sort((one, other) => Number(other) - Number(one)),
    );
    expect(results.slice(0, 2).map(({ type }) => type)).to.deep.equal(['agent', 'agent']);
    expect(ofType(results, 'agent').find(({ id }) => id === agent.id)).to.deep.include({
      title: 'Quokka 100%_x',
      subtitle: 'coder · idle',
      excerpt: 'Heartbeat received',
      snippet: 'Heartbeat received',
      relevance: 2,
      score: 2,
    });
    expect(ofType(results, 'task')).to.have.length(1);
    expect(ofType(results, 'task')[0]).to.deep.include({
      id: task,
      title: 'Feed the animals',
      subtitle: 'inbox · zoe',
      excerpt: 'First the quokka.',
      relevance: 1,
    });
    const [message] = ofType(results, 'message');
    expect(message).to.deep.include({
      title: 'ada → Quokka 100%_x',
      subtitle: `a2a:${agent.id}:@ada`,
      relevance: 1,
    });
    expect(message?.excerpt).to.equal(`...${'a'.repeat(35)} the QUOKKA likes leaves ${'b'.repeat(66)}...`);
    const activities = ofType(results, 'activity');
    expect(activities.map(({ title }) => title)).to.include.members([
      'Created agent Quokka 100%_x (coder)',
      'Heartbeat of Quokka 100%_x: nothing to do',
      'ada wrote to Quokka 100%_x',
    ]);
    expect(activities.find(({ title }) => title.startsWith('Created'))).to.not.have.property('excerpt');
    expect(activities.find(({ title }) => title.startsWith('Heartbeat'))).to.include({
      subtitle: 'by Quokka 100%_x',
    });
    expect(ofType(results, 'audit').map(({ title }) => title)).to.include('agent_created');
  });

  it('finds new records at once, and no deleted ones', async () => {
    const { id } = await makeAgent(base, 'numbat');
    expect((await search('q=numbat&type=agent')).results.map((one) => one.id)).to.deep.equal([id]);
    await call(base, 'PUT', `/api/agents/${id}`, { role: 'digger' });
    expect((await search('q=DIGGER&type=agents')).results[0]).to.deep.include({ id, relevance: 1 });
    await call(base, 'DELETE', `/api/agents/${id}`, {});
    expect((await search('q=numbat&type=agent')).results).to.deep.equal([]);
    expect((await search('q=numbat&type=activities')).results.map(({ title }) => title)).to.include(
      'Deleted agent numbat',
    );
  });

  it('shows people by their display names, as lists do', async () => {
    const operator = await makeUser(base, 'pia', 'operator');
    await call(base, 'PATCH', '/api/auth/me', { display_name: 'Pia Numbat' }, operator);
    await call(base, 'POST', '/api/tasks', { title: 'Count the bettongs' }, operator);
    await call(base, 'POST', '/api/chat/messages', { content: 'How many bettongs?', recipient: 'zoe' }, operator);
    const { results } = await search('q=bettong');
    expect(results.map(({ type, title, subtitle }) => [type, title, subtitle])).to.have.deep.members([
      ['task', 'Count the bettongs', 'inbox '],
      ['activity', 'Created task "Count the bettongs"', 'by Pia Numbat'],
      ['message', 'Pia Numbat → zoe', ofType(results, 'message')[0]?.subtitle],
    ]);
  });

  it('limits each type to its newest results, then the total', async () => {
    for (let n = 0; n < 4; n++) {
      await call(base, 'POST', `/api/agents/${agent.id}/wake`, {});
      await call(base, 'POST', `/api/agents/${agent.id}/heartbeat`, {});
    }
    const all = (await search('q=heartbeat%20of%20quokka&type=activity')).results;
    expect(all).to.have.length(5);
    const two = await search('q=heartbeat%20of%20quokka&type=activity&limit=2');
    expect(two.results).to.deep.equal(all.slice(0, 2));
    const both = await search('q=quokka&limit=2');
    // Two of each type, but one task and one message.
    expect(both).to.include({ count: 8, total: 8 });
    expect(both.results).to.have.length(2);
    expect((await search('q=quokka&limit=1000')).results.length).to.be.above(9);
  });

  it('accepts types in singular, plural and all; an unknown type finds nothing', async () => {
    const types = async (type: string) => [
      ...new Set((await search(`q=quokka&type=${type}&limit=100`)).results.map((one) => one.type)),
    ];
    for (const type of ['agent', 'agents', 'Agents']) expect(await types(type)).to.deep.equal(['agent']);
    for (const type of ['all', '']) {
      expect(await types(type)).to.have.members(['agent', 'task', 'message', 'activity', 'audit']);
    }
    for (const type of ['webhook', 'pipelines', 'nonsense']) expect(await types(type)).to.deep.equal([]);
  });

  it('finds webhooks by name, and by URL for admins only, because URLs often contain a token', async () => {
    const made = [];
    for (const [name, path] of [
      ['Wombat alarm', 'first'],
      ['Bell', 'of-WOMBATS'],
    ]) {
      const body = bodyOf(await call(base, 'POST', '/api/webhooks', { name, url: `https://example.com/${path}` }));
      made.push(body.id);
    }
    const shown = ({ results }: { results: Result[] }) =>
      results.map(({ type, id, title, subtitle, relevance }) => [type, id, title, subtitle, relevance]);
    const [alarm, bell] = made;
    const all = [
      ['webhook', alarm, 'Wombat alarm', 'https://example.com/first', 2],
      ['webhook', bell, 'Bell', 'https://example.com/of-WOMBATS', 1],
    ];
    expect(shown(await search('q=wombat'))).to.deep.equal(all);
    expect(shown(await search('q=WOMBAT&type=webhooks'))).to.deep.equal(all);
    expect(await search('q=example.com&type=webhook&limit=1')).to.deep.include({ count: 1, total: 1 });
    expect(shown(await search('q=example.com&type=webhook&limit=1'))).to.deep.equal([all[1]?.with(4, 1)]);
    const scopes = ['viewer'];
    const key = (await call(base, 'POST', `/api/agents/${agent.id}/keys`, { name: 'looker', scopes })).body.api_key;
    expect(shown(await search('q=wombat', key))).to.deep.equal([all[0]?.with(3, undefined)]);
    expect((await search('q=example.com&type=webhook', key)).results).to.deep.equal([]);
    await call(base, 'DELETE', '/api/webhooks', { id: alarm });
    expect(shown(await search('q=wombat'))).to.deep.equal([all[1]]);
  });

  it('finds audit entries for admins only', async () => {
    const key = (await call(base, 'POST', `/api/agents/${agent.id}/keys`, { name: 'finder', scopes: ['operator'] }))
      .body.api_key;
    expect(ofType((await search('q=agent_created')).results, 'audit')).to.not.deep.equal([]);
    expect(ofType((await search('q=agent_created', key)).results, 'audit')).to.deep.equal([]);
    expect((await search('q=agent_created&type=audit', key)).count).to.equal(0);
    expect((await search('q=quokka&type=agent', key)).count).to.equal(2);
  });

  it('finds one character that may be a word', async () => {
    const ids = [await makeTask(base, { title: '修 the door' }), await makeTask(base, { title: 'Lock it 🔒' })];
    for (const [n, text] of ['修', '🔒'].entries()) {
      const { results } = await search(`q=${encodeURIComponent(text)}&type=task`);
      expect(results.map(({ id }) => id)).to.deep.equal([ids[n]]);
    }
  });

  it('rejects queries that are too short, too long or malformed', async () => {
    for (const query of ['', 'q=', 'q=a', 'q=%20a%20', `q=${'a'.repeat(501)}`, 'q=ab%00', 'q=ab&q=cd']) {
      const { status, body } = await call(base, 'GET', `/api/search?${query}`);
      expect(status, query).to.equal(400);
      expect(body.details[0], query).to.match(/^q: ./);
    }
  });
});
