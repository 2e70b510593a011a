/**
 * Sessions of command-line tools and of gateways, and how clients show sessions. Streams:
 * `cli_session-<workspace>-<session id>`, `gateway_sessions-<workspace>`, and `session_prefs-<workspace>`.
 */
import { z } from 'zod';
import { defineEvent } from './define.ts';

const text = z.string().nullable();
const control = (by: string, data: { readonly session_id: string; readonly action: string }) => ({
  type: 'session_control' as const,
  entity_type: 'session' as const,
  entity_id: 0,
  description: `${by} asked for ${data.action} of session ${data.session_id}`,
  data: { session_key: data.session_id, action: data.action },
});
const count = z.int().nonnegative().nullable();

export const SESSION_ACTIONS = [
  'set-thinking',
  'set-verbose',
  'set-reasoning',
  'set-label',
  'monitor',
  'pause',
  'resume',
  'terminate',
  'delete',
] as const;

export const sessionReported = defineEvent({
  type: 'SessionReported',
  doc: 'A tool registered a session, or reported its state. Null: unchanged.',
  schema: z.object({
    id: z.int().positive(),
    session_id: z.string(),
    agent_name: text,
    model: text,
    project_slug: text,
    project_path: text,
    git_branch: text,
    user_messages: count,
    assistant_messages: count,
    tool_uses: count,
    input_tokens: count,
    output_tokens: count,
    /** US dollars. */
    estimated_cost: z.number().nonnegative().nullable(),
  }),
});

export const sessionControlled = defineEvent({
  type: 'SessionControlled',
  doc: 'A caller sent a command to a session. Its tool receives it from the event stream.',
  schema: z.object({
    id: z.int().positive(),
    session_id: z.string(),
    action: z.enum(SESSION_ACTIONS),
    /** Of a setting. */
    value: z.string().nullable(),
  }),
  activity: ({ data, meta }) => control(meta.actor.name, data),
  frames: ({ data }) => [
    { type: 'session.control', data: { session_key: data.session_id, action: data.action, value: data.value } },
  ],
});

export const gatewaySessionControlled = defineEvent({
  type: 'GatewaySessionControlled',
  doc: 'A caller sent a command to a session at the primary gateway, and the gateway executed it.',
  schema: z.object({
    gateway_id: z.int().positive(),
    gateway_name: z.string(),
    /** Id or key of the session, as the caller named it. */
    session_id: z.string(),
    action: z.enum(SESSION_ACTIONS),
    /** Of a setting. */
    value: z.string().nullable(),
  }),
  activity: ({ data, meta }) => control(meta.actor.name, data),
});

export const sessionPrefSet = defineEvent({
  type: 'SessionPrefSet',
  doc: 'The name and color with which clients show a session were set. Null: removed; absent: unchanged.',
  schema: z.object({ key: z.string(), name: text.optional(), color: text.optional() }),
});
