/** Workload. */
import { workloadOf } from '../../../queries/monitoring/workload.ts';
import { workloadResponse } from '../../../shared/contract/monitoring/workload.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute } from '../../http/route.ts';

export const workloadRoute = defineRoute({
  method: 'get',
  path: '/api/workload',
  summary: 'Workload, and a recommendation whether to submit more',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  responses: { 200: { description: 'Load, agents and a recommendation', schema: workloadResponse } },
  respond: ({ identity, services: { reads, settings, now } }) =>
    workloadOf(
      reads,
      identity.workspace,
      {
        queue_depth_normal: settings.workloadQueueDepthNormal,
        queue_depth_throttle: settings.workloadQueueDepthThrottle,
        queue_depth_shed: settings.workloadQueueDepthShed,
        busy_agent_ratio_throttle: settings.workloadBusyRatioThrottle,
        busy_agent_ratio_shed: settings.workloadBusyRatioShed,
        error_rate_throttle: settings.workloadErrorRateThrottle,
        error_rate_shed: settings.workloadErrorRateShed,
        recent_window_seconds: settings.workloadRecentWindowSeconds,
      },
      seconds(now()),
    ),
});
