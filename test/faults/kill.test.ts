/**
 * kill -9 under load: nothing that was acknowledged is lost, and clients go on once the service is back. All clients work
 * with the same service, which is killed under all of them.
 */
import { rm } from 'node:fs/promises';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect } from 'chai';
import { createClient, type Frame, type StreamState } from '../../client/index.ts';
import { beatUntil, checkHeartbeats, expectRebuilt, register, Sent } from '../support/heartbeats.ts';
import { connectMcp } from '../support/mcp.ts';
import { needsServer } from '../support/needs.ts';
import { runs } from '../support/runs.ts';
import { call, freshDatabase } from '../support/service.ts';
import { commandLine, freePort, KEY, type ServiceProcess, startProcess } from '../support/service-process.ts';
import { dataDirectory } from '../support/template.ts';
import { until } from '../support/until.ts';

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
const KILLS = runs(1, 3);
const WRITERS = 8;
/** How many agents are created before their frames arrive, at most. */
const AHEAD = 20;
/** A start under load takes seconds. */
const PATIENCE_MS = 60_000;

/** A client of a service that is killed. */
interface Working {
  /** Resolves once it has done more since it was last called: then the service may be killed. */
  busy?(): Promise<unknown>;
  /** Starts calls, and resolves with the first of them: then the service is killed. */
  inFlight?(): Promise<unknown>;
  whileGone?(): Promise<void>;
  /** Ends the work, and checks what became of it. */
  onceBack(): Promise<void>;
  close?(): Promise<unknown>;
}

type Begin = (url: string) => Promise<Working>;

const ask = (url: string, method: string, path: string, body?: unknown) =>
  call({ url }, method, path, body, { 'x-api-key': KEY });

/** All records of a list. */
async function listed<T>(url: string, path: string, key: string): Promise<readonly T[]> {
  const records: T[] = [];
  for (;;) {
    const page = (await ask(url, 'GET', `${path}?limit=200&offset=${records.length}`)).body[key] as T[];
    records.push(...page);
    if (page.length < 200) return records;
  }
}

/** Writers with plain requests, which end with the service. */
const writers: Begin = async (url) => {
  const names: string[] = [];
  const messages: number[] = [];
  const acknowledged = () => names.length + messages.length;
  let round = 0;
  let gone: Promise<unknown> = Promise.resolve();
  async function writeUntilGone(writer: string): Promise<void> {
    const post = (path: string, body: object) =>
      fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    for (let n = 0; ; n++) {
      const name = `agent-${writer}-${n}`;
      try {
        const created = await post('/api/agents', { name, role: 'coder' });
        if (created.status !== 201) return;
        await created.text();
        names.push(name);
        const sent = await post('/api/agents/message', { from: 'tester', to: name, content: 'hello' });
        if (sent.status !== 200) return;
        messages.push(((await sent.json()) as { id: number }).id);
      } catch (error) {
        // The connection broke: what was in flight is unknown, and does not count as acknowledged.
        expect(error).to.be.instanceOf(Error);
        return;
      }
    }
  }
  return {
    async busy() {
      round++;
      const enough = acknowledged() + 20 + Math.floor(Math.random() * 100);
      gone = Promise.all(Array.from({ length: WRITERS }, (_, n) => writeUntilGone(`${round}-${n}`)));
      await until('enough is acknowledged', () => acknowledged() >= enough, PATIENCE_MS);
    },
    async whileGone() {
      await gone;
    },
    async onceBack() {
      expect(acknowledged()).to.be.at.least(KILLS * 20);
      const agents = new Set((await listed<{ name: string }>(url, '/api/agents', 'agents')).map(({ name }) => name));
      expect(
        names.filter((name) => !agents.has(name)),
        'acknowledged agents that are gone',
      ).to.deep.equal([]);
      const sent = new Set((await listed<{ id: number }>(url, '/api/agents/comms', 'messages')).map(({ id }) => id));
      expect(
        messages.filter((id) => !sent.has(id)),
        'acknowledged messages that are gone',
      ).to.deep.equal([]);
    },
  };
};

/** Heartbeats that change nothing: each that was acknowledged counts once. */
const heartbeats: Begin = async (url) => {
  const sent = new Sent();
  const agents = await register(url);
  let over = false;
  let beating: Promise<void> | undefined;
  return {
    async busy() {
      const enough = sent.total() + 50 + Math.floor(Math.random() * runs(50, 150));
      beating ??= beatUntil(
        () => url,
        sent,
        agents,
        () => over,
      );
      // `onceBack` waits for it; a failure before that is reported there.
      beating.catch(() => undefined);
      await until('enough heartbeats are acknowledged', () => sent.total() >= enough, PATIENCE_MS);
    },
    async onceBack() {
      over = true;
      await beating;
      await checkHeartbeats(url, sent, agents);
    },
    async close() {
      over = true;
    },
  };
};

/** The client of this repository: it repeats its calls, and its stream resumes. */
const stream: Begin = async (url) => {
  const abort = new AbortController();
  const states: StreamState[] = [];
  const frames: Frame[] = [];
  const nameOf = (frame: Frame) => String(frame.data?.name);
  const client = createClient({ url, apiKey: KEY, retries: 400, longestPauseMs: 300, timeoutMs: 10_000 });
  let over = false;
  let created = 0;
  let failure: unknown;
  const following = (async () => {
    const options = { signal: abort.signal, kinds: ['agent.created'], since: '0', longestPauseMs: 300 };
    for await (const frame of client.events({ ...options, onState: (state) => states.push(state) }))
      if (nameOf(frame).startsWith('streamed-')) frames.push(frame);
  })();
  following.catch((error: unknown) => {
    failure = error;
  });
  const write = async () => {
    for (; !over; created++) {
      await client.call('POST /api/agents', { body: { name: `streamed-${created}`, role: 'researcher' } });
      await until('the stream follows', () => over || created < frames.length + AHEAD, PATIENCE_MS);
    }
  };
  let writing: Promise<void> | undefined;
  let round = 0;
  const goesOn = async () => {
    round++;
    const before = created;
    await until(
      'agents are created and the stream is live',
      () => {
        if (failure !== undefined) throw failure;
        return created > before + 5 && states.filter(({ state }) => state === 'live').length >= round;
      },
      PATIENCE_MS,
    );
  };
  return {
    async busy() {
      writing ??= write().catch((error: unknown) => {
        failure = error;
      });
      await goesOn();
    },
    async onceBack() {
      await goesOn();
      over = true;
      await writing;
      await until('all frames are here', () => frames.length >= created, PATIENCE_MS);
      const expected = Array.from({ length: created }, (_, n) => `streamed-${n}`);
      expect(frames.map(nameOf)).to.deep.equal(expected);
      expect(new Set(frames.map(({ id }) => id)).size).to.equal(created);
      const agents = (await listed<{ name: string }>(url, '/api/agents', 'agents')).map(({ name }) => name);
      expect(agents.filter((name) => name.startsWith('streamed-'))).to.have.members(expected);
    },
    async close() {
      over = true;
      abort.abort();
      await Promise.allSettled([writing, following]);
    },
  };
};

/** An agent with a key, and a task in the queue. */
async function agentWithTask(url: string, name: string) {
  const { agent } = (await ask(url, 'POST', '/api/agents', { name, role: 'coder' })).body;
  const { api_key: key } = (await ask(url, 'POST', `/api/agents/${agent.id}/keys`, { name: 'k', scopes: ['operator'] }))
    .body;
  const { task } = (await ask(url, 'POST', '/api/tasks', { title: `of ${name}`, assigned_to: name })).body;
  return { key: key as string, task: task.id as number };
}

/** Approves a task. @returns its status, and how many comments it has */
async function approved(url: string, taskId: number) {
  await ask(url, 'POST', '/api/quality-review', { taskId, status: 'approved', notes: 'fine' });
  const { comments } = (await ask(url, 'GET', `/api/tasks/${taskId}/comments`)).body;
  return [(await ask(url, 'GET', `/api/tasks/${taskId}`)).body.task.status, comments.length];
}

const mcpOverHttp =
  (era: '2025' | '2026'): Begin =>
  async (url) => {
    const { key, task } = await agentWithTask(url, `http-${era}`);
    const agent = await connectMcp(url, { 'x-api-key': key }, era);
    expect((await agent.value('next_task')).task.id).to.equal(task);
    const comment = () =>
      agent.value('comment_on_task', { id: task, content: 'begun', idempotency_key: `begun-${era}` });
    await comment();
    return {
      async whileGone() {
        expect(await agent.call('who_am_i').catch((error: Error) => error)).to.be.an('error');
      },
      async onceBack() {
        // It cannot know whether the call before the kill was carried out: it repeats it.
        await comment();
        const next = await agent.value('next_task');
        expect([next.reason, next.task.id]).to.deep.equal(['continue_current', task]);
        await agent.value('ask_for_review', { id: task, resolution: 'done' });
        expect(await approved(url, task)).to.deep.equal(['done', 1]);
      },
      close: () => agent.close(),
    };
  };

const mcpThroughCommand =
  (mode: 'auto' | 'legacy'): Begin =>
  async (url) => {
    const { key, task } = await agentWithTask(url, `stdio-${mode}`);
    const [command = '', ...args] = [process.execPath, ...commandLine('mcp', '--url', url)];
    const transport = new StdioClientTransport({ command, args, env: { SIGNALBOX_KEY: key }, stderr: 'inherit' });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(transport);
    const value = async (name: string, given: Record<string, unknown> = {}) => {
      const result = (await client.callTool({ name, arguments: given }, { timeout: 150_000 })) as Record<
        string,
        unknown
      >;
      expect(result.isError, JSON.stringify(result)).not.to.equal(true);
      // biome-ignore lint/suspicious/noExplicitAny: results are looked into freely.
      return result.structuredContent as any;
    };
    expect((await client.listTools()).tools.map(({ name }) => name)).to.include('next_task');
    expect((await value('next_task')).task.id).to.equal(task);
    let comments: Promise<unknown>[] = [];
    return {
      // Some of them may have been carried out.
      inFlight() {
        comments = Array.from({ length: 10 }, (_, n) => value('comment_on_task', { id: task, content: `no. ${n}` }));
        // `onceBack` waits for all; a failure before that is reported there.
        for (const one of comments) one.catch(() => undefined);
        return Promise.race(comments);
      },
      async onceBack() {
        await Promise.all(comments);
        const { contents } = await client.readResource({ uri: `task://${task}` });
        expect(JSON.parse((contents[0] as { text: string }).text).task).to.include({ status: 'in_progress' });
        await value('ask_for_review', { id: task });
        expect(await approved(url, task)).to.deep.equal(['done', 10]);
      },
      close: () => client.close(),
    };
  };

const CASES: Readonly<Record<string, Begin>> = {
  'loses no heartbeat, and counts each once': heartbeats,
  'delivers every frame once and in order to the client, and its POSTs take effect once': stream,
  'loses nothing acknowledged': writers,
  'an MCP client over HTTP continues without reconnecting (revision of 2026)': mcpOverHttp('2026'),
  'an MCP client over HTTP continues without reconnecting (revision of 2025)': mcpOverHttp('2025'),
  'a client of signalbox mcp waits until the service is back, and repeats no call (auto)': mcpThroughCommand('auto'),
  'a client of signalbox mcp waits until the service is back, and repeats no call (legacy)':
    mcpThroughCommand('legacy'),
};

for (const store of ['the embedded default', 'PostgreSQL']) {
  describe(`kill -9 under load on ${store}`, function () {
    this.timeout(300_000);
    const working = new Map<string, Working>();
    const env: Record<string, string> = {};
    let service: ServiceProcess | undefined;
    let end = async (): Promise<void> => undefined;

    before(async function () {
      if (store === 'PostgreSQL') {
        needsServer('TEST_DATABASE_URL', this);
        const fresh = await freshDatabase();
        end = fresh.drop;
        env.DATABASE_URL = fresh.url;
      }
      env.DATA_DIR = await dataDirectory();
      env.PORT = String(await freePort());
      service = await startProcess(env.DATA_DIR, env);
      for (const [title, begin] of Object.entries(CASES)) working.set(title, await begin(service.url));
      const all = [...working.values()];
      for (let kill = 0; kill < KILLS; kill++) {
        await Promise.all(all.map((one) => one.busy?.()));
        // Their tasks are done once.
        if (kill === 0) await Promise.race(all.flatMap((one) => one.inFlight?.() ?? []));
        await service.stop('SIGKILL');
        for (const one of all) await one.whileGone?.();
        service = await startProcess(env.DATA_DIR, env);
      }
    });
    after(async () => {
      for (const one of working.values()) await one.close?.();
      await service?.stop();
      await end();
      if (env.DATA_DIR) await rm(env.DATA_DIR, { recursive: true, force: true });
    });

    for (const title of Object.keys(CASES)) it(title, () => (working.get(title) as Working).onceBack());

    it('has the read models that a rebuild gives', () => expectRebuilt(env));
  });
}
