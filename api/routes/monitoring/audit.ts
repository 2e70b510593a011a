/** The audit trail. */
import { listAudit } from '../../../queries/monitoring/audit.ts';
import { auditAnswer, auditQuery } from '../../../shared/contract/monitoring/audit.ts';
import { defineRoute, type Route } from '../../http/route.ts';

export const auditRoutes: readonly Route[] = [
  defineRoute({
    method: 'get',
    path: '/api/audit',
    tag: 'Monitoring',
    summary: 'List the audit trail, newest first',
    access: 'admin',
    query: auditQuery,
    responses: { 200: { description: 'Audit entries', schema: auditAnswer } },
    cache: { models: ['audit'], scope: 'workspace' },
    handle: async ({ query, identity, services }) => ({
      body: await listAudit(services.reads, identity.workspace, query),
    }),
  }),
];
