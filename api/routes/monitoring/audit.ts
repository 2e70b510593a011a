/** The audit trail. */
import { listAudit } from '../../../queries/monitoring/audit.ts';
import { auditQuery, auditResponse } from '../../../shared/contract/monitoring/audit.ts';
import { defineCachedRoute } from '../../http/route.ts';

export const auditRoute = defineCachedRoute({
  method: 'get',
  path: '/api/audit',
  summary: 'List the audit trail, newest first',
  mcp: { tool: 'list_audit_entries' },
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'all', prompts: 'none' },
  query: auditQuery,
  responses: { 200: { description: 'Audit entries', schema: auditResponse } },
  cache: { models: ['audit'] },
  respond: ({ query, identity, services }) => listAudit(services.reads, identity.workspace, query),
});
