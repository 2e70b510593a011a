/**
 * Who may call what, and how often: one table, written by hand. Tests compare it with the routes both ways, so that
 * neither changes alone, and call every row of it.
 */
import type { Role } from '../../shared/identity.ts';

/**
 * Method, path, least role, class of limits, `deployment` where only the default tenant may call, and what an agent's key
 * may do: `own`: about an agent, for which a key must be the agent's own. `closed`: nothing. `bound`: with the scope
 * `admin` only. `self`: the call itself says who may. `tasks`: bound to the tasks of the agent. `admin`: needs the role
 * admin, and is about no agent. `open`: about no agent. `-`: it reads.
 */
const TABLE = `
POST    /api/auth/login                       none      login            -           -
GET     /api/auth/google                      none      -                -           -
POST    /api/auth/google                      none      provider-sign-in -           -
POST    /api/auth/google/disconnect           viewer    -                -           closed
GET     /api/auth/oidc                        none      -                -           -
POST    /api/auth/oidc                        none      provider-sign-in -           -
POST    /api/auth/oidc/begin                  none      provider-sign-in -           -
POST    /api/auth/logout                      viewer    -                -           open
GET     /api/auth/me                          viewer    -                -           -
PATCH   /api/auth/me                          viewer    -                -           closed
GET     /api/setup                            none      -                -           -
POST    /api/setup                            none      login            -           -
GET     /api/auth/users                       admin     -                -           -
POST    /api/auth/users                       admin     users            -           admin
PUT     /api/auth/users                       admin     users            -           admin
DELETE  /api/auth/users                       admin     users            -           admin
DELETE  /api/people/{username}                admin     users            -           admin
GET     /api/auth/access-requests             admin     -                deployment  -
POST    /api/auth/access-requests             admin     access-requests  deployment  admin
GET     /api/tokens                           viewer    -                -           -
POST    /api/tokens                           operator  -                -           own
POST    /api/tokens/batch                     operator  -                -           own
GET     /api/tokens/by-agent                  viewer    -                -           -
GET     /api/tokens/prices                    viewer    -                -           -
PUT     /api/tokens/prices                    operator  mutation         -           bound
DELETE  /api/tokens/prices                    operator  mutation         -           bound
GET     /api/tokens/rotate                    admin     -                deployment  -
POST    /api/tokens/rotate                    admin     api-key          deployment  admin
GET     /api/agents                           viewer    -                -           -
POST    /api/agents                           operator  mutation         -           open
PUT     /api/agents                           operator  mutation         -           own
POST    /api/agents/register                  viewer    self-register    -           self
GET     /api/agents/{id}                      viewer    -                -           -
PUT     /api/agents/{id}                      operator  mutation         -           own
DELETE  /api/agents/{id}                      admin     mutation         -           own
POST    /api/agents/{id}/hide                 operator  mutation         -           own
DELETE  /api/agents/{id}/hide                 operator  mutation         -           own
GET     /api/agents/{id}/diagnostics          viewer    -                -           -
GET     /api/agents/{id}/attribution          viewer    -                -           -
GET     /api/agents/{id}/heartbeat            viewer    -                -           -
POST    /api/agents/{id}/heartbeat            operator  agent-heartbeat  -           own
POST    /api/agents/{id}/wake                 operator  mutation         -           own
GET     /api/agents/{id}/memory               viewer    -                -           -
PUT     /api/agents/{id}/memory               operator  mutation         -           own
DELETE  /api/agents/{id}/memory               operator  mutation         -           own
GET     /api/agents/{id}/soul                 viewer    -                -           -
PUT     /api/agents/{id}/soul                 operator  mutation         -           own
PATCH   /api/agents/{id}/soul                 viewer    -                -           open
POST    /api/agents/message                   operator  mutation         -           own
GET     /api/agents/comms                     viewer    -                -           -
GET     /api/agents/sync                      admin     -                -           -
POST    /api/agents/sync                      admin     mutation         -           admin
GET     /api/agents/{id}/keys                 admin     -                -           closed
POST    /api/agents/{id}/keys                 admin     mutation         -           closed
DELETE  /api/agents/{id}/keys                 admin     mutation         -           closed
GET     /api/chat/conversations               viewer    -                -           -
GET     /api/chat/messages                    viewer    -                -           -
POST    /api/chat/messages                    operator  -                -           open
GET     /api/chat/messages/{id}               viewer    -                -           -
PATCH   /api/chat/messages/{id}               operator  -                -           own
GET     /api/connect                          viewer    -                -           -
POST    /api/connect                          operator  -                -           own
DELETE  /api/connect                          operator  -                -           own
GET     /api/claude/sessions                  viewer    -                -           -
POST    /api/claude/sessions                  operator  -                -           own
GET     /api/sessions                         viewer    -                -           -
POST    /api/sessions                         operator  mutation         -           own
DELETE  /api/sessions                         operator  mutation         -           own
POST    /api/sessions/{id}/control            operator  mutation         -           own
GET     /api/chat/session-prefs               viewer    -                -           -
PATCH   /api/chat/session-prefs               operator  -                -           open
GET     /api/adapters                         viewer    -                -           -
POST    /api/adapters                         operator  agent-heartbeat  -           own
GET     /api/workflows                        viewer    -                -           -
POST    /api/workflows                        operator  mutation         -           bound
PUT     /api/workflows                        operator  mutation         -           bound
DELETE  /api/workflows                        operator  mutation         -           bound
GET     /api/pipelines                        viewer    -                -           -
POST    /api/pipelines                        operator  mutation         -           bound
PUT     /api/pipelines                        operator  -                -           bound
DELETE  /api/pipelines                        operator  -                -           bound
GET     /api/pipelines/run                    viewer    -                -           -
POST    /api/pipelines/run                    operator  -                -           open
GET     /api/projects                         viewer    -                -           -
POST    /api/projects                         operator  mutation         -           bound
GET     /api/projects/{id}                    viewer    -                -           -
PATCH   /api/projects/{id}                    operator  mutation         -           bound
DELETE  /api/projects/{id}                    admin     mutation         -           admin
GET     /api/projects/{id}/tasks              viewer    -                -           -
GET     /api/projects/{id}/agents             viewer    -                -           -
POST    /api/projects/{id}/agents             operator  mutation         -           own
DELETE  /api/projects/{id}/agents             operator  mutation         -           own
GET     /api/mentions                         viewer    -                -           -
GET     /api/tasks                            viewer    -                -           -
POST    /api/tasks                            operator  mutation         -           open
PUT     /api/tasks                            operator  mutation         -           open
GET     /api/tasks/{id}                       viewer    -                -           -
PUT     /api/tasks/{id}                       operator  mutation         -           tasks
DELETE  /api/tasks/{id}                       operator  mutation         -           tasks
GET     /api/tasks/{id}/comments              viewer    -                -           -
POST    /api/tasks/{id}/comments              operator  mutation         -           tasks
POST    /api/tasks/{id}/broadcast             operator  -                -           open
GET     /api/tasks/{id}/branch                viewer    -                -           -
POST    /api/tasks/{id}/branch                operator  mutation         -           open
GET     /api/tasks/queue                      operator  agent-poll       -           own
GET     /api/quality-review                   viewer    -                -           -
POST    /api/quality-review                   operator  mutation         -           self
GET     /api/webhooks                         admin     -                -           -
POST    /api/webhooks                         admin     mutation         -           admin
PUT     /api/webhooks                         admin     mutation         -           admin
DELETE  /api/webhooks                         admin     mutation         -           admin
GET     /api/webhooks/deliveries              admin     -                -           -
POST    /api/webhooks/test                    admin     -                -           admin
POST    /api/webhooks/retry                   admin     -                -           admin
GET     /api/webhooks/verify-docs             viewer    -                -           -
GET     /api/alerts                           viewer    -                -           -
POST    /api/alerts                           operator  mutation         -           bound
PUT     /api/alerts                           operator  mutation         -           bound
DELETE  /api/alerts                           admin     mutation         -           admin
GET     /api/gateway-config                   admin     -                -           -
PUT     /api/gateway-config                   admin     gateway-config   -           admin
GET     /api/export                           admin     heavy            -           admin
GET     /api/history/causes/{id}              admin     -                deployment  -
GET     /api/history/checkpoint               viewer    -                -           -
GET     /api/history/consistency              admin     -                deployment  -
GET     /api/history/diff                     admin     -                -           -
GET     /api/history/events                   admin     -                deployment  -
GET     /api/history/events/{id}              admin     -                deployment  -
GET     /api/history/key                      viewer    -                -           -
GET     /api/history/proof                    admin     -                deployment  -
GET     /api/history/timeline                 admin     -                deployment  -
GET     /api/cron                             admin     -                deployment  -
POST    /api/cron                             admin     -                deployment  admin
GET     /api/backup                           admin     -                deployment  -
GET     /api/resume                           admin     -                deployment  -
POST    /api/resume                           admin     backup           deployment  admin
POST    /api/backup                           admin     backup           deployment  admin
DELETE  /api/backup                           admin     backup           deployment  admin
GET     /api/cleanup                          admin     -                -           -
POST    /api/cleanup                          admin     heavy            -           admin
GET     /api/scheduler                        admin     -                deployment  -
POST    /api/scheduler                        admin     -                deployment  admin
GET     /api/super/tenants                    admin     -                deployment  -
POST    /api/super/tenants                    admin     mutation         deployment  admin
POST    /api/super/tenants/{id}/decommission  admin     mutation         deployment  admin
GET     /api/super/provision-jobs             admin     -                deployment  -
POST    /api/super/provision-jobs             admin     mutation         deployment  admin
GET     /api/super/provision-jobs/{id}        admin     -                deployment  -
POST    /api/super/provision-jobs/{id}        admin     mutation         deployment  admin
POST    /api/super/provision-jobs/{id}/run    admin     mutation         deployment  admin
GET     /api/workspaces                       viewer    -                -           -
POST    /api/workspaces                       admin     mutation         -           admin
GET     /api/workspaces/{id}                  viewer    -                -           -
PUT     /api/workspaces/{id}                  admin     mutation         -           admin
DELETE  /api/workspaces/{id}                  admin     mutation         -           admin
GET     /api/settings                         admin     -                deployment  -
PUT     /api/settings                         admin     mutation         deployment  admin
DELETE  /api/settings                         admin     mutation         deployment  admin
GET     /api/gateways                         viewer    -                deployment  -
POST    /api/gateways                         admin     mutation         deployment  admin
PUT     /api/gateways                         admin     mutation         deployment  admin
DELETE  /api/gateways                         admin     mutation         deployment  admin
POST    /api/gateways/health                  viewer    mutation         deployment  open
GET     /api/gateways/health/history          viewer    -                deployment  -
POST    /api/gateways/connect                 viewer    -                deployment  closed
GET     /api/exec-approvals                   operator  -                deployment  closed
POST    /api/exec-approvals                   operator  exec-approvals   deployment  closed
PUT     /api/exec-approvals                   operator  exec-approvals   deployment  closed
GET     /api/activities                       viewer    -                -           -
GET     /api/audit                            admin     -                -           -
GET     /api/logs                             viewer    read             -           -
POST    /api/logs                             operator  mutation         -           open
GET     /api/notifications                    viewer    -                -           -
PUT     /api/notifications                    operator  mutation         -           own
POST    /api/notifications                    operator  mutation         -           own
DELETE  /api/notifications                    admin     mutation         -           admin
GET     /api/notifications/deliver            viewer    -                -           -
POST    /api/notifications/deliver            operator  -                -           own
GET     /api/search                           viewer    heavy            -           -
GET     /api/workload                         viewer    -                -           -
GET     /api/standup                          viewer    -                -           -
POST    /api/standup                          operator  -                -           open
GET     /api/tasks/outcomes                   viewer    -                -           -
GET     /api/tasks/regression                 viewer    read             -           -
GET     /api/events                           viewer    -                -           -
GET     /health/live                          none      -                -           -
GET     /health/ready                         none      -                -           -
GET     /api/health                           none      -                -           -
GET     /api/status                           viewer    -                -           -
GET     /api/releases/check                   viewer    -                -           -
GET     /api/github                           operator  -                deployment  -
POST    /api/github                           operator  mutation         deployment  bound
GET     /api/github/sync                      operator  -                deployment  -
POST    /api/github/sync                      operator  mutation         deployment  bound
GET     /metrics                              viewer    -                deployment  -
GET     /api/docs                             none      -                -           -
GET     /docs                                 none      -                -           -
GET     /docs/swagger-ui.css                  none      -                -           -
GET     /docs/swagger-ui-bundle.js            none      -                -           -
GET     /docs/page.css                        none      -                -           -
GET     /docs/init.js                         none      -                -           -
GET     /docs/icon.svg                        none      -                -           -
GET     /                                     none      -                -           -
GET     /agents                               none      -                -           -
GET     /agents/{id}                          none      -                -           -
GET     /tasks                                none      -                -           -
GET     /tasks/{id}                           none      -                -           -
GET     /activity                             none      -                -           -
GET     /audit                                none      -                -           -
GET     /cost                                 none      -                -           -
GET     /alerts                               none      -                -           -
GET     /webhooks                             none      -                -           -
GET     /chat                                 none      -                -           -
GET     /chat/{id}                            none      -                -           -
GET     /log                                  none      -                -           -
GET     /log/{view}                           none      -                -           -
GET     /admin                                none      -                -           -
GET     /admin/{view}                         none      -                -           -
GET     /console/{file}                       none      -                -           -
POST    /mcp                                  viewer    -                -           open
`;

export interface AccessRow {
  /** `POST /api/agents/{id}/keys` */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly role: Role | 'none';
  readonly limit: string;
  readonly scope: string;
  readonly agents: string;
}

export const ACCESS = TABLE.trim()
  .split('\n')
  .map((line): AccessRow => {
    const [method = '', path = '', role, limit = '', scope = '', agents = ''] = line.split(/\s+/);
    return { name: `${method} ${path}`, method, path, role: role as AccessRow['role'], limit, scope, agents };
  });
