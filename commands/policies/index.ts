/** The policies that follow the log. Scheduled tasks are in `commands/schedules`. */
import { alertPolicies } from './alerts/actions.ts';
import { pipelinePolicies } from './pipelines/runs.ts';
import type { Policy } from './policy.ts';
import { reviewPolicy } from './quality/verdicts.ts';
import { dispatchPolicy } from './tasks/dispatch.ts';

export const policies: readonly Policy[] = [...pipelinePolicies, ...alertPolicies, dispatchPolicy, reviewPolicy];
