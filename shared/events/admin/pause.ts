/** The end of the pause after a restore. Stream: `pause`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const deploymentResumed = defineEvent({
  type: 'DeploymentResumed',
  doc: 'An operator ended the pause after a restore: calls leave and schedules run again.',
  schema: z.object({
    /** Begin of the pause, Unix seconds. */
    paused_since: z.int().nonnegative(),
  }),
  audit: ({ data }) => ({ action: 'deployment_resume', detail: { paused_since: data.paused_since } }),
});
