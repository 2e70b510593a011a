/** A service with what the tests of agents share: a key with all rights, a stream, and shortcuts for requests. */
import { expect } from 'chai';
import type { z } from 'zod';
import { bodyOf, type Reply } from '../service.ts';
import { type Frame, openStream } from '../stream.ts';
import { startAuthWorld } from './auth.ts';

export type AgentsWorld = Awaited<ReturnType<typeof startAgentsWorld>>;

/** The whole body matches its description, without anything else. Gives the body. */
export function conforms(schema: z.ZodType, reply: Reply, status = 200): Reply['body'] {
  const body = bodyOf(reply, status);
  expect(schema.parse(body)).to.deep.equal(body);
  return body;
}

export async function startAgentsWorld(env: Record<string, string> = {}) {
  const world = await startAuthWorld(env);
  const stream = await openStream(`${world.url}/api/events`, { 'x-api-key': world.adminKey });
  let names = 0;
  /** A name that no other agent of the test has. */
  const fresh = (prefix = 'agent') => `${prefix}-${++names}`;
  /** One request; `as` is a key or a cookie, the global key unless given. */
  const ask = (
    method: string,
    path: string,
    body?: unknown,
    as = world.adminKey,
    headers: Record<string, string> = {},
  ): Promise<Reply> => world.ask(method, path, { as, body, headers });
  return {
    world,
    stream,
    ask,
    /** Expects a refusal with a text, and with `says` somewhere in the body. */
    async refused(method: string, path: string, body: unknown, status: number, says?: RegExp): Promise<Reply> {
      const reply = await ask(method, path, body);
      const what = `${method} ${path} ${JSON.stringify(body)?.slice(0, 100)}: ${JSON.stringify(reply.body)}`;
      expect(reply.status, what).to.equal(status);
      expect(reply.body.error, what).to.be.a('string').that.is.not.empty;
      if (says) expect(JSON.stringify(reply.body)).to.match(says);
      return reply;
    },
    fresh,
    async create(
      fields: object = {},
    ): Promise<{ id: number; name: string; created_at: number } & Record<string, unknown>> {
      return bodyOf(await ask('POST', '/api/agents', { name: fresh(), role: 'coder', ...fields }), 201).agent;
    },
    get: async (id: number | string) => (await ask('GET', `/api/agents/${id}`)).body.agent,
    /** Activities of one agent, newest first. */
    async activities(type: string, agentId: number): Promise<Reply['body'][]> {
      const { activities } = (await ask('GET', `/api/activities?type=${type}&limit=200`)).body;
      return activities.filter((activity: { entity_id: number }) => activity.entity_id === agentId);
    },
    /** Frames about one agent that have come so far. */
    framesOf: (type: string, agentId: number): Frame[] =>
      stream.frames.filter((frame) => frame.type === type && frame.data.id === agentId),
    async close() {
      stream.close();
      await world.close();
    },
  };
}
