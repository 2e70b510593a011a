/** Sign-in and sign-out; the response of a sign-in is the caller, see `profile.ts`. */
import { z } from 'zod';
import { lineOfText } from '../common.ts';
import { password } from './users.ts';

export const loginBody = z.object({
  username: lineOfText(1, 320).normalize('NFC'),
  password: password.min(1, 'must not be empty'),
});
export const googleBody = z.object({
  credential: z.string().min(1, 'must not be empty').max(16_384).describe('Google ID token'),
});
export const googleSettings = z.object({
  client_id: z.string().nullable().describe('audience of the ID token; null: Google sign-in is off'),
});
export const signedOutResponse = z.object({ ok: z.literal(true), success: z.literal(true) });
