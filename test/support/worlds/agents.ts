/** A service with what the tests of agents share: a key with all rights, a stream, and shortcuts for requests. */
import { expect } from 'chai';
import type { z } from 'zod';
import type { Reply } from '../service.ts';
import { type Frame, type OpenStream, openStream } from '../stream.ts';
import { type AuthWorld, startAuthWorld } from './auth.ts';

export interface AgentsWorld {
  readonly world: AuthWorld;
  readonly stream: OpenStream;
  /** One request; `as` is a key or a cookie, the global key unless given. */
  ask(method: string, path: string, body?: unknown, as?: string, headers?: Record<string, string>): Promise<Reply>;
  /** Expects a refusal with a text, and with `says` somewhere in the answer. */
  refused(method: string, path: string, body: unknown, status: number, says?: RegExp): Promise<Reply>;
  /** A name that no other agent of the test has. */
  fresh(prefix?: string): string;
  create(fields?: object): Promise<{ id: number; name: string; created_at: number } & Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
  get(id: number | string): Promise<any>;
  /** Activities of one agent, newest first. */
  // biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
  activities(type: string, agentId: number): Promise<any[]>;
  /** Frames about one agent that have come so far. */
  framesOf(type: string, agentId: number): Frame[];
  close(): Promise<void>;
}

/** The whole answer matches the description, without anything else. */
export function conforms(schema: z.ZodType, reply: Reply, status = 200): void {
  expect(reply.status, JSON.stringify(reply.body)).to.equal(status);
  expect(schema.parse(reply.body)).to.deep.equal(reply.body);
}

/** The calls of a world that is started later, in a hook. */
export const callsOf = (world: () => AgentsWorld): Pick<AgentsWorld, 'ask' | 'create' | 'get' | 'activities'> => ({
  ask: (...asked) => world().ask(...asked),
  create: (...fields) => world().create(...fields),
  get: (...id) => world().get(...id),
  activities: (...about) => world().activities(...about),
});

export async function startAgentsWorld(env: Record<string, string> = {}): Promise<AgentsWorld> {
  const world = await startAuthWorld(env);
  const stream = await openStream(`${world.url}/api/events`, { 'x-api-key': world.adminKey });
  let names = 0;
  const fresh = (prefix = 'agent') => `${prefix}-${++names}`;
  const ask: AgentsWorld['ask'] = (method, path, body, as = world.adminKey, headers = {}) =>
    world.ask(method, path, { as, body, headers });
  return {
    world,
    stream,
    ask,
    async refused(method, path, body, status, says) {
      const reply = await ask(method, path, body);
      const what = `${method} ${path} ${JSON.stringify(body)?.slice(0, 100)}: ${JSON.stringify(reply.body)}`;
      expect(reply.status, what).to.equal(status);
      expect(reply.body.error, what).to.be.a('string').that.is.not.empty;
      if (says) expect(JSON.stringify(reply.body)).to.match(says);
      return reply;
    },
    fresh,
    async create(fields = {}) {
      const reply = await ask('POST', '/api/agents', { name: fresh(), role: 'coder', ...fields });
      expect(reply.status, JSON.stringify(reply.body)).to.equal(201);
      return reply.body.agent;
    },
    get: async (id) => (await ask('GET', `/api/agents/${id}`)).body.agent,
    async activities(type, agentId) {
      const { activities } = (await ask('GET', `/api/activities?type=${type}&limit=200`)).body;
      return activities.filter((activity: { entity_id: number }) => activity.entity_id === agentId);
    },
    framesOf: (type, agentId) => stream.frames.filter((frame) => frame.type === type && frame.data.id === agentId),
    async close() {
      stream.close();
      await world.close();
    },
  };
}
