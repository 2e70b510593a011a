/** The caller: its identity, and the fields that users may change about themselves. */
import { z } from 'zod';
import { displayName, password, userSchema } from './users.ts';

/** The caller. API keys are callers without an account, so they lack the fields that only accounts have. */
export const callerSchema = userSchema
  .partial({ is_approved: true, created_at: true, updated_at: true, last_login_at: true })
  .meta({ id: 'Caller', description: 'id 0: the deployment key; below 0: an agent key' });
export type CallerRecord = z.infer<typeof callerSchema>;
export const callerResponse = z.object({ user: callerSchema });

export const MIN_OWN_PASSWORD = 8;
export const profileBody = z.object({
  current_password: password.optional(),
  // The length is checked after the kind of caller, so that an API key gets the error that it has no profile.
  new_password: password.optional().meta({ minLength: MIN_OWN_PASSWORD }),
  display_name: displayName.optional(),
});
export const profileResponse = z.object({ success: z.literal(true), user: callerSchema });
