/** The liveness sweep, which finds agents that no longer report. Streams: `liveness-<workspace>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const livenessChecked = defineEvent({
  type: 'LivenessChecked',
  doc: 'The liveness sweep set agents offline that had stopped reporting.',
  schema: z.object({ marked_offline: z.array(z.string()), count: z.int() }),
  audit: ({ data }) => ({
    action: 'heartbeat_check',
    actor: 'scheduler',
    detail: { marked_offline: data.marked_offline, marked_offline_count: data.count },
  }),
});
