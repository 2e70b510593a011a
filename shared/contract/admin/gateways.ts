/** Gateways: the record, changes, health, and what a browser needs to connect. */
import { z } from 'zod';
import { GATEWAY_STATUSES } from '../../ports/admin/gateways.ts';
import { idBody, idValue, unixSeconds } from '../common.ts';
import { filledText, text } from '../storable.ts';

export const gatewaySchema = z
  .object({
    id: z.int(),
    name: z.string(),
    url: z.string(),
    status: z.enum(GATEWAY_STATUSES),
    last_health_check: unixSeconds.nullable().describe('last probe, whatever its result'),
    host: z.string().describe('of `url`'),
    port: z.int().describe('of `url`'),
    token: z.string().describe('`--------` when there is one; it is never shown'),
    token_set: z.boolean(),
    is_primary: z.int().min(0).max(1),
    last_seen: unixSeconds.nullable().describe('last probe with a response, or as reported'),
    latency: z.int().nullable().describe('milliseconds'),
    sessions_count: z.int(),
    agents_count: z.int(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
  })
  .meta({ id: 'Gateway' });
export type GatewayRecord = z.infer<typeof gatewaySchema>;

/** Maximum number of characters in an address. */
const MAX_URL = 2_048;
const between = (min: number, max: number) => (value: number) => value >= min && value <= max;
/** A whole number, or its digits. */
const count = (max: number, min = 0) =>
  z
    .union([
      z.int(),
      z
        .string()
        .regex(/^\d{1,15}$/, 'must be a whole number')
        .transform(Number),
    ])
    .refine(between(min, max), `must be a whole number from ${min} to ${max}`)
    .meta({ override: { type: 'integer', minimum: min, maximum: max } });
const flag = z
  .union([z.boolean(), z.literal([0, 1]).transform((value) => value === 1)])
  .meta({ override: { type: 'boolean' } });

const address = {
  url: filledText(MAX_URL)
    .optional()
    .describe(
      'a URL (http, https, ws, wss) or a host; a port in it wins over `port`, a query `token` in it over `token`; to a host without a scheme, browsers connect by wss when they show a page over https',
    ),
  host: filledText(MAX_URL).optional().describe('the same as `url`'),
  port: count(65_535, 1).optional().describe('of an address without a port; 18789 next to a URL is ignored'),
};
const token = text(4_096);
/** Maximum number of agents per request that are registered; further ones are ignored. */
export const GATEWAY_AGENTS = 50;
const agents = z
  .array(z.object({ name: filledText(100), role: filledText(100).default('agent') }))
  .max(1_000)
  .optional()
  .describe(
    `the first ${GATEWAY_AGENTS} are registered in the workspace of the caller, or show a sign of life: they are idle`,
  );

export const newGatewayBody = z.object({
  name: filledText(200),
  ...address,
  token: token.default(''),
  is_primary: flag.default(false).describe('makes all others secondary'),
  agents,
});
export type NewGatewayBody = z.infer<typeof newGatewayBody>;

export const gatewayChangesBody = z.object({
  id: idValue,
  name: filledText(200).optional(),
  url: address.url,
  host: address.host.describe('the same as `url`; a host without a port keeps the port of before'),
  port: address.port.describe('of an address without a port; alone, the rest of the address stays'),
  token: token.optional().describe('empty: none from now on; `--------`: unchanged'),
  is_primary: flag.optional(),
  status: z.enum(GATEWAY_STATUSES).optional(),
  last_seen: count(99_999_999_999).nullable().optional().describe('Unix seconds'),
  latency: count(86_400_000).nullable().optional().describe('milliseconds'),
  sessions_count: count(1_000_000_000).optional(),
  agents_count: count(1_000_000_000).optional(),
  agents,
});
export type GatewayChangesBody = z.infer<typeof gatewayChangesBody>;

export const gatewaysResponse = z.object({ gateways: z.array(gatewaySchema) });
export const gatewayResponse = z.object({
  gateway: gatewaySchema,
  agents_registered: z.int().optional().describe('only if agents were sent'),
});
export const gatewayChangedResponse = gatewayResponse.extend({ success: z.literal(true) });
export const gatewayDeletedResponse = z.object({ success: z.literal(true), deleted: z.boolean() });

export const gatewayHealthBody = z.object({ gateway_id: idValue.optional().describe('only this one') });
export const gatewayHealthResponse = z.object({
  results: z.array(
    z.object({
      id: z.int(),
      name: z.string(),
      status: z.enum(GATEWAY_STATUSES),
      latency: z.int().nullable(),
      agents: z.array(z.string()),
      sessions_count: z.int(),
      gateway_version: z.string().nullable(),
      error: z.string().optional(),
    }),
  ),
  probed_at: z.int().describe('Unix milliseconds'),
});

export const gatewayHistoryResponse = z.object({
  history: z.array(
    z.object({
      gatewayId: z.int(),
      name: z.string(),
      entries: z.array(
        z.object({
          status: z.enum(GATEWAY_STATUSES),
          latency: z.int().nullable(),
          probed_at: unixSeconds,
          error: z.string().optional(),
        }),
      ),
    }),
  ),
});

export const gatewayConnectBody = idBody;
export const gatewayConnectResponse = z.object({
  id: z.int(),
  ws_url: z.string(),
  token: z.string().describe('for operators and admins; empty for viewers'),
  token_set: z.boolean(),
});
