/** The official clients of the Model Context Protocol, connected to a service. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** A result of a tool call, looked into freely. */
export interface ToolResult {
  readonly isError: boolean;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: results are looked into freely.
  readonly value: any;
}

export interface McpClient {
  readonly client: Client;
  call(name: string, args?: Record<string, unknown>): Promise<ToolResult>;
  /** Calls a tool that has to succeed, and gives its value. */
  // biome-ignore lint/suspicious/noExplicitAny: results are looked into freely.
  value(name: string, args?: Record<string, unknown>): Promise<any>;
  close(): Promise<void>;
}

function resultOf({ isError, content, structuredContent }: Record<string, unknown>): ToolResult {
  const text = (content as readonly { readonly text?: string }[])[0]?.text ?? '';
  // A large result is sent as text only.
  return { isError: isError === true, text, value: structuredContent ?? JSON.parse(text) };
}

/** @param era `2026`: the revision 2026-07-28; `2025`: 2025-11-25 */
export async function connectMcp(
  url: string,
  headers: Record<string, string>,
  era: '2025' | '2026' = '2026',
): Promise<McpClient> {
  const mode = era === '2026' ? ('auto' as const) : ('legacy' as const);
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers } }));
  const call: McpClient['call'] = async (name, args = {}) =>
    resultOf((await client.callTool({ name, arguments: args })) as Record<string, unknown>);
  return {
    client,
    call,
    async value(name, args) {
      const result = await call(name, args);
      if (result.isError) throw new Error(`${name}: ${result.text}`);
      return result.value;
    },
    close: () => client.close(),
  };
}

/** The client of the SDK's former line, which most hosts have today. */
export async function connectFormerMcp(url: string, headers: Record<string, string>): Promise<FormerClient> {
  const client = new FormerClient({ name: 'test', version: '1' });
  const transport = new FormerTransport(new URL('/mcp', url), { requestInit: { headers } });
  // Its types do not allow for `exactOptionalPropertyTypes`.
  await client.connect(transport as unknown as Parameters<FormerClient['connect']>[0]);
  return client;
}
