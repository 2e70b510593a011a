/** The deployment's own API key. All its events are in one stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const GLOBAL_KEY_STREAM = 'global_key';

export const KEY_SOURCES = ['database', 'environment', 'none'] as const;
export type KeySource = (typeof KEY_SOURCES)[number];

export const globalKeyConfigured = defineEvent({
  type: 'GlobalKeyConfigured',
  version: 1,
  doc: 'The deployment has a new API key, from its environment or generated because there was none. It is the only valid one.',
  schema: z.object({
    keyId: z.int().positive(),
    source: z.enum(['environment', 'database']),
    /** First and last characters, for recognition. */
    masked: z.string(),
  }),
});

export const globalKeyRotated = defineEvent({
  type: 'GlobalKeyRotated',
  version: 1,
  doc: 'An admin replaced the API key of the deployment. The new key takes precedence over the environment for good; the old one stops working at once.',
  schema: z.object({
    keyId: z.int().positive(),
    masked: z.string(),
    oldSource: z.enum(KEY_SOURCES),
    oldMasked: z.string().nullable(),
  }),
  audit: ({ data }) => ({
    action: 'api_key_rotated',
    detail: {
      old_source: data.oldSource,
      ...(data.oldMasked !== null && { old_key_masked: data.oldMasked }),
      new_key_masked: data.masked,
    },
  }),
});

export const globalKeyEvents = [globalKeyConfigured, globalKeyRotated];
