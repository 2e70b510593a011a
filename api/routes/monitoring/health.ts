/** Probes and metrics. The operations page describes the routes outside /api. */
import { healthResponse, livenessResponse, readinessResponse } from '../../../shared/contract/monitoring/health.ts';
import { defineRoute, type Route } from '../../http/route.ts';

export const healthRoutes: readonly Route[] = [
  defineRoute({
    method: 'get',
    path: '/health/live',
    hidden: true,
    summary: 'Check that the process is running',
    access: 'public',
    rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
    responses: { 200: { description: 'Alive', schema: livenessResponse } },
    respond: () => ({ status: 'ok' }),
  }),
  defineRoute({
    method: 'get',
    path: '/health/ready',
    hidden: true,
    summary: 'Check that stores are reachable and read models are up to date',
    access: 'public',
    rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
    responses: {
      200: { description: 'Ready', schema: readinessResponse },
      503: { description: 'Not ready; `checks` names the problems', schema: readinessResponse },
    },
    async handle({ services, identity, isOfDeployment }) {
      const { ok, checks, details } = await services.ready();
      // Positions and reasons are about all workspaces and the infrastructure. The check must not fail a probe.
      const mayKnow = identity?.role === 'admin' && (await isOfDeployment().catch(() => false));
      return {
        status: ok ? 200 : 503,
        body: { status: ok ? 'ok' : 'degraded', checks, ...(mayKnow && { details }) },
      };
    },
  }),
  defineRoute({
    method: 'get',
    path: '/api/health',
    summary: 'Short form of /health/ready',
    access: 'public',
    rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
    responses: {
      200: { description: 'Well', schema: healthResponse },
      503: { description: 'Degraded', schema: healthResponse },
    },
    async handle({ services }) {
      const { ok } = await services.ready();
      const ts = new Date(services.now()).toISOString();
      return { status: ok ? 200 : 503, body: { status: ok ? 'ok' : 'degraded', db: ok ? 'ok' : 'error', ts } };
    },
  }),
  defineRoute({
    method: 'get',
    path: '/metrics',
    hidden: true,
    summary: 'Prometheus metrics',
    access: 'viewer',
    rules: { agentKeys: 'any', strict: 'refused', past: 'none', prompts: 'none' },
    scope: 'deployment',
    responses: { 200: { description: 'Metrics in the Prometheus text format', type: 'text/plain' } },
    handle: async ({ services }) => ({
      text: { type: services.metrics.contentType, content: await services.metrics.metrics() },
    }),
  }),
];
