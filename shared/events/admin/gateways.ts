/** Gateways of the deployment, and the results of probes. Streams: `gateways`, `gateway-probes`. */
import { z } from 'zod';
import { GATEWAY_STATUSES } from '../../ports/admin/gateways.ts';
import { defineEvent } from '../define.ts';

const gateway_id = z.int().positive();

/** Fields that a client may report. */
const reported = z.object({
  status: z.enum(GATEWAY_STATUSES),
  /** Unix seconds. */
  last_seen: z.int().nullable(),
  /** Milliseconds. */
  latency: z.int().nullable(),
  sessions_count: z.int(),
  agents_count: z.int(),
});

/** The address was given without a scheme. If the page uses TLS, a browser then connects with TLS. */
const bare = z.boolean();

const person = (data: { readonly gateway_id: number }) => `gateway:${data.gateway_id}`;

export const gatewayAdded = defineEvent({
  type: 'GatewayAdded',
  doc: 'A gateway was created. Its token is sealed.',
  schema: z.object({
    gateway_id,
    name: z.string(),
    url: z.string(),
    bare,
    token: z.string().nullable(),
    is_primary: z.boolean(),
  }),
  personal: { fields: ['token'], person },
  audit: ({ data }) => ({
    action: 'gateway_added',
    target: ['gateway', data.gateway_id],
    detail: { name: data.name, url: data.url },
  }),
});

export const gatewayChanged = defineEvent({
  type: 'GatewayChanged',
  doc: 'Fields of a gateway were set. Absent fields are unchanged. The token is sealed; `token_set` says whether the gateway has one.',
  schema: reported.partial().extend({
    gateway_id,
    name: z.string().optional(),
    url: z.string().optional(),
    /** Of a new URL. */
    bare: bare.optional(),
    is_primary: z.boolean().optional(),
    token: z.string().nullable().optional(),
    token_set: z.boolean().optional(),
  }),
  personal: { fields: ['token'], person },
});
export type GatewayChange = Omit<Parameters<typeof gatewayChanged.draft>[0], 'gateway_id' | 'token_set'>;

export const gatewayRemoved = defineEvent({
  type: 'GatewayRemoved',
  doc: 'A gateway was deleted.',
  schema: z.object({ gateway_id, name: z.string() }),
  audit: ({ data }) => ({
    action: 'gateway_removed',
    target: ['gateway', data.gateway_id],
    detail: { name: data.name },
  }),
});

export const gatewaysProbed = defineEvent({
  type: 'GatewaysProbed',
  doc: 'The health of gateways was probed.',
  schema: z.object({
    /** Number of the probe, from a counter. */
    probe: z.int().positive(),
    results: z.array(
      z.object({
        gateway_id,
        name: z.string(),
        status: z.enum(GATEWAY_STATUSES),
        latency: z.int().nullable(),
        error: z.string().nullable(),
      }),
    ),
  }),
});
