/** Gateways of the deployment, and what probes of them found. Streams: `gateways`, `gateway-probes`. */
import { z } from 'zod';
import { GATEWAY_STATUSES } from '../../ports/admin/gateways.ts';
import { defineEvent } from '../define.ts';

const gatewayId = z.int().positive();

/** Fields that a client may report. */
const reported = z.object({
  status: z.enum(GATEWAY_STATUSES),
  /** Unix seconds. */
  lastSeen: z.int().nullable(),
  /** Milliseconds. */
  latency: z.int().nullable(),
  sessionsCount: z.int(),
  agentsCount: z.int(),
});

/** The address was given without a scheme. A browser that is shown a page over TLS then connects over TLS. */
const bare = z.boolean().optional();

const person = (data: { readonly gatewayId: number }) => `gateway:${data.gatewayId}`;

export const gatewayAdded = defineEvent({
  type: 'GatewayAdded',
  version: 1,
  doc: 'A gateway is known from now on. Its token is sealed.',
  schema: z.object({
    gatewayId,
    name: z.string(),
    url: z.string(),
    bare,
    token: z.string().nullable(),
    isPrimary: z.boolean(),
  }),
  personal: { fields: ['token'], person },
  audit: ({ data }) => ({
    action: 'gateway_added',
    target_type: 'gateway',
    target_id: data.gatewayId,
    detail: { name: data.name, url: data.url },
  }),
});

export const gatewayChanged = defineEvent({
  type: 'GatewayChanged',
  version: 1,
  doc: 'Fields of a gateway were set. Those that are missing stayed as they were. A token is sealed; tokenSet says whether there is one from now on.',
  schema: reported.partial().extend({
    gatewayId,
    name: z.string().optional(),
    url: z.string().optional(),
    /** Of a new URL. */
    bare,
    isPrimary: z.boolean().optional(),
    token: z.string().nullable().optional(),
    tokenSet: z.boolean().optional(),
  }),
  personal: { fields: ['token'], person },
});
export type GatewayChange = Omit<Parameters<typeof gatewayChanged.draft>[0], 'gatewayId' | 'tokenSet'>;

export const gatewayRemoved = defineEvent({
  type: 'GatewayRemoved',
  version: 1,
  doc: 'A gateway is no longer known.',
  schema: z.object({ gatewayId, name: z.string() }),
  audit: ({ data }) => ({
    action: 'gateway_removed',
    target_type: 'gateway',
    target_id: data.gatewayId,
    detail: { name: data.name },
  }),
});

export const gatewaysProbed = defineEvent({
  type: 'GatewaysProbed',
  version: 1,
  doc: 'The health of gateways was probed.',
  schema: z.object({
    /** Number of the probe, from a counter. */
    probe: z.int().positive(),
    results: z.array(
      z.object({
        gatewayId,
        name: z.string(),
        status: z.enum(GATEWAY_STATUSES),
        latency: z.int().nullable(),
        error: z.string().nullable(),
      }),
    ),
  }),
});

export const gatewayEvents = [gatewayAdded, gatewayChanged, gatewayRemoved, gatewaysProbed];
