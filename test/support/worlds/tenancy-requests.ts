/** What the tests of tenancy send beyond what the description of the API says, and what they get. */
import { NOBODY } from './tenancy.ts';

/** What a schema does not tell of the bodies that a route takes. */
export const BODIES: Readonly<Record<string, (ref: { readonly number: number; readonly name: string }) => unknown[]>> =
  {
    'POST /api/adapters': ({ name }) => [
      { framework: 'generic', action: 'register', payload: { agentId: name, name } },
      { framework: 'generic', action: 'assignments', payload: { agentId: name } },
    ],
    'POST /api/alerts': ({ name }) => [
      { action: 'evaluate' },
      {
        ...{ name, entity_type: 'agent', condition_field: 'status', condition_operator: 'equals' },
        condition_value: name,
      },
    ],
    'PUT /api/alerts': ({ number, name }) => [{ id: number, name }],
    'POST /api/webhooks': ({ name }) => [{ name, url: 'https://example.org/hook', events: [name] }],
    'POST /api/scheduler': () => [{ task_id: 'purge_logs' }],
    'POST /api/gateways': ({ name }) => [{ name, url: NOBODY }],
    // A name that no other gateway has, whichever numbers and names meet.
    'PUT /api/gateways': ({ number, name }) => [{ id: number, name: `${name}-${number}` }],
    'POST /api/cron': ({ name }) => [{ action: 'add', name, schedule: '0 4 1 1 *', command: 'purge_logs' }],
    'POST /api/workspaces': ({ name }) => [{ name }],
    'PUT /api/workspaces/{id}': ({ name }) => [{ name }],
    'POST /api/super/tenants': ({ name }) => [{ slug: name, display_name: name, gateway_port: 2_000 }],
    'POST /api/super/provision-jobs': ({ number }) => [{ tenant_id: number }],
    'POST /api/super/provision-jobs/{id}': () => [{ action: 'approve' }],
    'DELETE /api/backup': () => [{ name: 'mc-backup-2020-01-01_00-00-00.db' }],
    'PUT /api/exec-approvals': ({ name }) => [{ agents: { [name]: [{ pattern: name }] } }],
    'PATCH /api/chat/session-prefs': ({ name }) => [{ key: `local:${name}`, name }],
    // A guessed `timestamp` is too old.
    'POST /api/tokens/batch': ({ name }) => [
      { reports: [{ model: name, sessionId: name, inputTokens: 1, outputTokens: 1 }] },
    ],
    'POST /api/pipelines': ({ number, name }) => [
      { name, steps: [{ template_id: number }, { template_id: number, on_failure: 'continue' }] },
    ],
  };

/** Calls that cannot succeed with guessed input: their responses. */
export const REFUSED: Readonly<Record<string, number>> = {
  'DELETE /api/backup': 404, // of no name that is guessed
  'POST /api/resume': 409, // the deployment is not paused
  'POST /api/auth/login': 401, // of no password that is guessed
  'POST /api/auth/google': 400, // of no token that is guessed
  'POST /api/auth/google/disconnect': 400, // of a user with a password
  // No provider is configured.
  'POST /api/auth/oidc': 400,
  'POST /api/auth/oidc/begin': 400,
  'POST /api/setup': 403, // of a deployment that has users
  // Ids of events are no names: test/contract/history has real ones.
  'GET /api/history/events/{id}': 400,
  'GET /api/history/causes/{id}': 400,
  // Its moments have to be given: see the same.
  'GET /api/history/diff': 400,
  'GET /api/history/proof': 400,
  'DELETE /api/connect': 404, // of a connection whose id is guessed
  'POST /api/tasks/{id}/branch': 400, // of a project without a repository
};

/** Their response ends the session, or is about messages that have keys of their own. */
export const NOT_REPLAYED = ['POST /api/auth/logout', 'POST /mcp'];
