/** The policies that follow the log. Schedules, such as the liveness sweep, are in `infra/jobs/schedules.ts`. */
import { alertPolicies } from './alerts/actions.ts';
import { pipelinePolicies } from './pipelines/runs.ts';
import type { Policy } from './policy.ts';

export const policies: readonly Policy[] = [...pipelinePolicies, ...alertPolicies];
