/** The API key of the deployment. */
import { z } from 'zod';
import { KEY_SOURCES } from '../../events/auth/global-key.ts';
import { unixSeconds } from '../common.ts';

export const globalKeyState = z.object({
  masked_key: z.string().nullable().describe('null when only a hash is stored'),
  source: z.enum(KEY_SOURCES),
  last_rotated_at: unixSeconds.nullable(),
  last_rotated_by: z.string().nullable(),
  configured: z.boolean(),
});
export const globalKeyResponse = z.object({
  key: z.string().describe('shown once'),
  masked_key: z.string(),
  rotated_at: unixSeconds,
  rotated_by: z.string(),
  message: z.string(),
});
