/** kill -9 under a load of writes: nothing that was acknowledged is lost, and the restarted service catches up by itself. */
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import { closing } from '../support/fixture.ts';
import { needsServer } from '../support/needs.ts';
import { runs } from '../support/runs.ts';
import { freshDatabase } from '../support/service.ts';
import { KEY, startProcess } from '../support/service-process.ts';
import { dataDirectory } from '../support/template.ts';
import { until } from '../support/until.ts';

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
const ROUNDS = runs(1, 3);

async function json(url: string): Promise<Record<string, never>> {
  const response = await fetch(url, { headers });
  return (await response.json()) as Record<string, never>;
}

/** Writes with `writers` at once until the service has died. @returns what was acknowledged */
async function writeUntilGone(url: string, round: number, writers: number, enough: (acknowledged: number) => void) {
  const agents: string[] = [];
  const messages: number[] = [];
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let n = 0; ; n++) {
        const name = `agent-${round}-${writer}-${n}`;
        try {
          const created = await fetch(`${url}/api/agents`, {
            method: 'POST',
            headers,
            body: JSON.stringify({ name, role: 'coder' }),
          });
          if (created.status !== 201) return;
          await created.text();
          agents.push(name);
          const sent = await fetch(`${url}/api/agents/message`, {
            method: 'POST',
            headers,
            body: JSON.stringify({ from: 'tester', to: name, content: 'hello' }),
          });
          if (sent.status !== 200) return;
          messages.push(((await sent.json()) as { id: number }).id);
        } catch (error) {
          // The connection broke: whatever was in flight is unknown, and not counted as acknowledged.
          expect(error).to.be.instanceOf(Error);
          return;
        }
        enough(agents.length + messages.length);
      }
    }),
  );
  return { agents, messages };
}

async function killed(env: Record<string, string>): Promise<void> {
  const path = await dataDirectory();
  await using directory = closing({ path, remove: () => rm(path, { recursive: true, force: true }) });
  const names: string[] = [];
  const messageIds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const service = await startProcess(directory.path, env);
    let dead: Promise<void> | undefined;
    const limit = 20 + Math.floor(Math.random() * 100);
    const done = await writeUntilGone(service.url, round, 8, (count) => {
      if (count >= limit) dead ??= service.stop('SIGKILL');
    });
    await dead;
    names.push(...done.agents);
    messageIds.push(...done.messages);
  }
  expect(names.length + messageIds.length).to.be.greaterThan(ROUNDS * 20);

  const service = await startProcess(directory.path, env);
  const found = new Set<string>();
  for (let offset = 0; ; offset += 200) {
    const { agents } = (await json(`${service.url}/api/agents?limit=200&offset=${offset}`)) as unknown as {
      agents: { name: string }[];
    };
    for (const agent of agents) found.add(agent.name);
    if (agents.length < 200) break;
  }
  expect(
    names.filter((name) => !found.has(name)),
    'acknowledged agents that are gone',
  ).to.deep.equal([]);
  const sent = new Set<number>();
  for (let offset = 0; ; offset += 200) {
    const { messages } = (await json(`${service.url}/api/agents/comms?limit=200&offset=${offset}`)) as unknown as {
      messages: { id: number }[];
    };
    for (const message of messages) sent.add(message.id);
    if (messages.length < 200) break;
  }
  expect(
    messageIds.filter((id) => !sent.has(id)),
    'acknowledged messages that are gone',
  ).to.deep.equal([]);
  await until('ready', async () => (await fetch(`${service.url}/health/ready`)).ok);
  await service.stop();
}

describe('kill -9 under load', function () {
  this.timeout(120_000);

  it('loses nothing acknowledged on the embedded default', () => killed({}));

  it('loses nothing acknowledged on PostgreSQL', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using fresh = closing(await freshDatabase());
    await killed({ DATABASE_URL: fresh.url });
  });
});
