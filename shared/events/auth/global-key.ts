/** The deployment's own API key. All its events are in one stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const GLOBAL_KEY_STREAM = 'global_key';

export const KEY_SOURCES = ['database', 'environment', 'none'] as const;
export type KeySource = (typeof KEY_SOURCES)[number];

export const globalKeyConfigured = defineEvent({
  type: 'GlobalKeyConfigured',
  doc: 'The deployment got an API key, from its environment or generated because there was none. It replaces every earlier key.',
  schema: z.object({
    key_id: z.int().positive(),
    source: z.enum(['environment', 'database']),
    /** First and last characters, for recognition. */
    masked: z.string(),
  }),
});

export const globalKeyRotated = defineEvent({
  type: 'GlobalKeyRotated',
  doc: 'An admin replaced the API key of the deployment. From now on the new key takes precedence over the environment; the old one stopped working at once.',
  schema: z.object({
    key_id: z.int().positive(),
    masked: z.string(),
    old_source: z.enum(KEY_SOURCES),
    old_masked: z.string().nullable(),
  }),
  audit: ({ data }) => ({
    action: 'api_key_rotated',
    detail: {
      old_source: data.old_source,
      ...(data.old_masked !== null && { old_key_masked: data.old_masked }),
      new_key_masked: data.masked,
    },
  }),
});
