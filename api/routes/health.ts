/** Probes and metrics. */
import { z } from 'zod';
import { defineRoute, type Route } from '../http/route.ts';

const state = z.object({ status: z.string() });

export const healthRoutes: readonly Route[] = [
  defineRoute({
    method: 'get',
    path: '/health/live',
    tag: 'Monitoring',
    summary: 'The process answers',
    access: 'public',
    responses: { 200: { description: 'Alive', schema: state } },
    handle: () => ({ body: { status: 'ok' } }),
  }),
  defineRoute({
    method: 'get',
    path: '/health/ready',
    tag: 'Monitoring',
    summary: 'Stores are reachable and read models are up to date',
    access: 'public',
    responses: {
      200: { description: 'Ready', schema: state.extend({ checks: z.record(z.string(), z.string()) }) },
      503: {
        description: 'Not ready; `checks` says why',
        schema: state.extend({ checks: z.record(z.string(), z.string()) }),
      },
    },
    async handle({ services }) {
      const { ok, checks } = await services.ready();
      return { status: ok ? 200 : 503, body: { status: ok ? 'ok' : 'degraded', checks } };
    },
  }),
  defineRoute({
    method: 'get',
    path: '/api/health',
    tag: 'Monitoring',
    summary: 'Short form of /health/ready',
    access: 'public',
    responses: {
      200: { description: 'Well', schema: z.object({ status: z.string(), db: z.string(), ts: z.string() }) },
      503: { description: 'Degraded', schema: z.object({ status: z.string(), db: z.string(), ts: z.string() }) },
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
    tag: 'Monitoring',
    summary: 'Prometheus metrics',
    access: 'viewer',
    scope: 'deployment',
    responses: { 200: { description: 'Metrics in the Prometheus text format', type: 'text/plain' } },
    handle: async ({ services }) => ({
      text: { type: services.metrics.contentType, content: await services.metrics.metrics() },
    }),
  }),
];
