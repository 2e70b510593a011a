/** The pause after a restore. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';

export const pauseResponse = z.object({
  paused: z.boolean().describe('whether no call leaves and no schedule runs'),
  since: unixSeconds.nullable().describe('when a backup was restored; null: the deployment is not paused'),
});
