/** The policies that follow the log. Schedules, such as the liveness sweep, are in `infra/schedules.ts`. */
import type { Policy } from './policy.ts';

export const policies: readonly Policy[] = [];
