/** Connections of command-line tools that call the service directly, without a gateway. */
import { z } from 'zod';
import { jsonObject, limitParam, offsetParam, unixSeconds } from './common.ts';
import { filledText, nameText, storable, text } from './storable.ts';

export const connectionSchema = z
  .object({
    id: z.int(),
    agent_id: z.int(),
    agent_name: z.string(),
    tool_name: z.string(),
    tool_version: z.string().nullable(),
    connection_id: z.uuid(),
    status: z.enum(['connected', 'disconnected']),
    last_heartbeat: unixSeconds.describe('last heartbeat through this connection, or when it began; Unix seconds, UTC'),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    metadata: jsonObject.nullable(),
    agent_status: z.string(),
    agent_role: z.string(),
    workspace_id: z.int(),
  })
  .meta({ id: 'Connection' });
export type ConnectionRecord = z.infer<typeof connectionSchema>;

/** Characters as JSON. */
const MAX_METADATA = 10_000;

export const connectBody = z.object({
  tool_name: filledText(100),
  agent_name: nameText(100).describe('an agent of this name is created if there is none'),
  tool_version: text(50).nullish(),
  agent_role: text(100).normalize('NFC').nullish().describe('role of an agent that is created; default cli'),
  metadata: jsonObject.superRefine(storable({ characters: MAX_METADATA })).nullish(),
});

export const connectResponse = z.object({
  connection_id: z.uuid().describe('to be sent with each heartbeat'),
  agent_id: z.int(),
  agent_name: z.string(),
  status: z.literal('connected'),
  sse_url: z.string().describe('path of the stream of events'),
  heartbeat_url: z.string().describe('path for heartbeats; every 30 seconds is a good interval'),
  token_report_url: z.string().describe('path for reports of used tokens'),
});

export const connectionsQuery = z.object({ limit: limitParam(200), offset: offsetParam });
export type ConnectionsQuery = z.infer<typeof connectionsQuery>;
export const connectionsResponse = z.object({ connections: z.array(connectionSchema).describe('newest first') });

export const disconnectBody = z.object({ connection_id: filledText(200) });
export const disconnectResponse = z.object({ status: z.literal('disconnected'), connection_id: z.uuid() });
