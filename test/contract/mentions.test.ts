/** Mentions through HTTP: what an editor is offered, and that commands find the same. */
import { expect } from 'chai';
import { mentionedIn } from '../../commands/mentions.ts';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import { schemaOf } from '../../projections/projection.ts';
import { listMentions } from '../../queries/mentions.ts';
import { mentionsResponse } from '../../shared/contract/mentions.ts';
import { fixture } from '../support/fixture.ts';
import { conforms } from '../support/worlds/agents.ts';
import { startAuthWorld } from '../support/worlds/auth.ts';

describe('contract: mentions', function () {
  this.timeout(120_000);
  const world = fixture(startAuthWorld);
  before(async () => {
    await world.makeUser({ username: 'Bob', display_name: 'Robert Émile' });
    await world.makeUser({ username: 'build-bot', display_name: 'Builder' });
    await world.makeUser({ username: 'foreign', tenant: 2, workspace: 2 });
    for (const name of ['zed', 'Build Bot', 'Écho', 'Code Review Bot', 'code-review bot']) await world.makeAgent(name);
    await world.makeAgent('foreigner', 2);
  });

  const ask = (query: string) => world.ask('GET', `/api/mentions${query}`, { as: world.adminKey });
  const handles = async (query: string): Promise<string[]> =>
    (await ask(query)).body.mentions.map(({ handle }: { handle: string }) => handle);

  it('list users by username, then agents by name; a handle belongs to its first owner', async () => {
    const { mentions, total, q } = conforms(mentionsResponse, await ask(''));
    expect({ total, q }).to.deep.equal({ total: mentions.length, q: '' });
    const users = mentions.filter(({ type }: { type: string }) => type === 'user');
    expect(mentions.slice(0, users.length)).to.deep.equal(users);
    expect(users).to.deep.include.members([
      { handle: 'bob', recipient: 'Bob', type: 'user', display: 'Robert Émile' },
      { handle: 'build-bot', recipient: 'build-bot', type: 'user', display: 'Builder' },
    ]);
    const agent = (handle: string, name: string) => ({
      handle,
      recipient: name,
      type: 'agent',
      display: name,
      role: 'tester',
    });
    expect(mentions.slice(users.length)).to.have.deep.members([
      // `build-bot` is the user.
      agent('build bot', 'Build Bot'),
      agent('code-review-bot', 'Code Review Bot'),
      agent('code review bot', 'Code Review Bot'),
      // `code-review-bot` is the agent before.
      agent('code-review bot', 'code-review bot'),
      agent('zed', 'zed'),
      agent('écho', 'Écho'),
    ]);
  });

  it('reach agents whose names are not ASCII, in texts and through x-agent-name in both forms', async () => {
    const names = ['小明', 'Ольга', 'élodie'];
    for (const name of names) await world.makeAgent(name);
    const found = await mentionedIn(world.service.core.reads, 1, '@小明请看 @Ольга, @ÉLODIE');
    expect(found.recipients).to.deep.equal(names);
    for (const name of names)
      for (const header of [encodeURIComponent(name), Buffer.from(name).toString('latin1')]) {
        const url = `/api/agents/${encodeURIComponent(name)}/diagnostics`;
        const { status } = await world.ask('GET', url, { as: world.adminKey, headers: { 'x-agent-name': header } });
        expect(status, header).to.equal(200);
      }
  });

  it('reach the user or agent that a mention looks like, as names are compared', async () => {
    await world.makeAgent('pilot-one');
    // The second letter is Cyrillic; the digit looks like the letter l.
    const { recipients } = await mentionedIn(
      world.service.core.reads,
      1,
      '@р\u0456l\u043et-one and @pi1ot-one, @b\u043eb',
    );
    expect(recipients).to.deep.equal(['pilot-one', 'Bob']);
  });

  it('match any part of handle, name or display name, in any letter case', async () => {
    expect(await handles('?q=%20OBER%20')).to.deep.equal(['bob']);
    expect(await handles(`?q=${encodeURIComponent('ÉMI')}`)).to.deep.equal(['bob']);
    expect(await handles('?q=review-b')).to.deep.equal(['code-review-bot']);
    expect(await handles('?q=review%20b')).to.have.members(['code-review-bot', 'code review bot', 'code-review bot']);
    expect((await ask('?q=%20ZED%20')).body).to.include({ q: 'zed', total: 1 });
    expect(await handles('?q=%25')).to.deep.equal([]);
    for (const q of ['e\u0301CHO', 'Éch', 'E\u0301C'])
      expect(await handles(`?type=agent&q=${encodeURIComponent(q)}`), q).to.deep.equal(['écho']);
    await world.makeAgent('İzmir');
    for (const q of ['İzm', 'i\u0307zm', 'I\u0307ZM'])
      expect(await handles(`?q=${encodeURIComponent(q)}`), q).to.have.length(1);
  });

  it('can be filtered by type; an unknown type is ignored', async () => {
    expect(await handles('?type=user&q=bot')).to.deep.equal(['build-bot']);
    expect(await handles('?type=agent&q=build')).to.deep.equal(['build bot']);
    expect(await handles('?type=robot')).to.deep.equal(await handles(''));
  });

  it('are limited to exactly the requested number, if there are enough', async () => {
    const all = await handles('?limit=200');
    for (const limit of [1, 2, 3, 4, all.length, all.length + 1]) {
      expect(await handles(`?limit=${limit}`), `${limit}`).to.deep.equal(all.slice(0, limit));
    }
    expect(await handles('?limit=x')).to.deep.equal(all.slice(0, 25));
    expect(await handles('?limit=0')).to.deep.equal(all.slice(0, 1));
  });

  it('resolve in a text to the same users and agents as in the list', async () => {
    const { reads } = world.service.core;
    const listed = await listMentions(reads, 1, { q: '', type: undefined, limit: 200 });
    for (const { handle, recipient, type } of listed.filter((one) => /^[a-z0-9._-]+$/.test(one.handle))) {
      const { recipients, agents } = await mentionedIn(reads, 1, `ask @${handle.toUpperCase()}.`);
      expect({ recipients, agents }, handle).to.deep.equal({
        recipients: [recipient],
        agents: type === 'agent' ? [recipient] : [],
      });
    }
    const refused = await mentionedIn(reads, 1, '@foreign and @foreigner').catch((error) => error);
    expect(refused.extras.body).to.deep.equal({ missing_mentions: ['foreign', 'foreigner'] });
  });

  it('exist exactly as long as the user or agent', async () => {
    const agent = { name: 'Fleeting One', role: 'coder' };
    const made = await world.ask('POST', '/api/agents', { as: world.adminKey, body: agent });
    expect(await handles('?q=fleet')).to.deep.equal(['fleeting-one', 'fleeting one']);
    await world.ask('DELETE', `/api/agents/${made.body.agent.id}`, { as: world.adminKey });
    expect(await handles('?q=fleet')).to.deep.equal([]);
  });

  it('are looked up by indexes', async () => {
    const client = await world.service.core.database.pool.connect();
    const planOf = async (text: string) =>
      (await client.query(`EXPLAIN ${text}`)).rows.map((row) => row['QUERY PLAN']).join('\n');
    try {
      await client.query('BEGIN');
      // There are few rows: otherwise the plan would be to read the whole table.
      await client.query('SET LOCAL enable_seqscan = off');
      expect(
        await planOf(
          `SELECT 1 FROM ${schemaOf(usersProjection)}.users WHERE workspace_id = 1 AND lower(username) = ANY('{a,b}')`,
        ),
      ).to.match(/users_6/);
      expect(
        await planOf(`SELECT 1 FROM ${schemaOf(agentsProjection)}.agents WHERE workspace_id = 1
          AND lower(regexp_replace(name, '\\s+', '-', 'g')) = ANY('{a,b}')`),
      ).to.match(/agents_6/);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });
});
