/** The Model Context Protocol at `/mcp`: tools and resources of other routes, for agents and their hosts. */
import { z } from 'zod';
import { once } from '../http/files.ts';
import { defineRoute, type Route } from '../http/route.ts';

/** Messages in one request; only revisions before 2025-06-18 allow several. */
const MAX_BATCH = 20;

const message = z.record(z.string(), z.unknown());
const mcpBody = z.union([message, z.array(message).max(MAX_BATCH)], {
  error: `must be a JSON-RPC message, or a batch of at most ${MAX_BATCH}`,
});

/** @param routes all routes; called at the first request, which also loads the SDK, so that startup does not have to */
export function mcpRoutes(routes: () => readonly Route[]): readonly Route[] {
  const loaded = once(async () => {
    const [{ handleMcp }, { resourcesOf }, { toolsOf }] = await Promise.all([
      import('../mcp/server.ts'),
      import('../mcp/resources.ts'),
      import('../mcp/tools.ts'),
    ]);
    return { handleMcp, tools: toolsOf(routes()), resources: resourcesOf(routes()) };
  });
  return [
    defineRoute({
      method: 'post',
      path: '/mcp',
      summary: 'The Model Context Protocol (Streamable HTTP)',
      access: 'viewer',
      rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
      limit: 'none',
      hidden: true,
      carriesCalls: true,
      body: mcpBody,
      responses: { 200: { description: 'A JSON-RPC response' }, 202: { description: 'A notification was taken' } },
      async handle(call) {
        const { handleMcp, ...parts } = await loaded();
        const { log, version } = call.services;
        return { status: 200, ...(await handleMcp({ ...parts, log, version }, call)) };
      },
    }),
  ];
}
