/** From the description of the API (/api/docs), written by `npm run client:types`. */

/** Every call, by method and path. */

export interface Api {
  readonly 'POST /api/auth/login': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly username: string; readonly password: string };
    readonly response: { readonly user: Caller };
  };
  readonly 'GET /api/auth/google': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly client_id: string | null };
  };
  readonly 'POST /api/auth/google': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly credential: string };
    readonly response: { readonly user: Caller };
  };
  readonly 'POST /api/auth/google/disconnect': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly ok: true; readonly success: true };
  };
  readonly 'GET /api/auth/oidc': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly name: string | null };
  };
  readonly 'POST /api/auth/oidc': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly code: string; readonly state: string; readonly iss?: string };
    readonly response: { readonly user: Caller };
  };
  readonly 'POST /api/auth/oidc/begin': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly url: string };
  };
  readonly 'POST /api/auth/logout': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly ok: true; readonly success: true };
  };
  readonly 'GET /api/auth/me': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly user: Caller };
  };
  readonly 'PATCH /api/auth/me': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly current_password?: string;
      readonly new_password?: string;
      readonly display_name?: string;
    };
    readonly response: { readonly success: true; readonly user: Caller };
  };
  readonly 'GET /api/setup': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly needsSetup: boolean };
  };
  readonly 'POST /api/setup': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly username: string; readonly password: string; readonly displayName?: string };
    readonly response: { readonly user: User };
  };
  readonly 'GET /api/auth/users': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly users: readonly User[] };
  };
  readonly 'POST /api/auth/users': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly username: string;
      readonly password: string;
      readonly role: 'viewer' | 'operator' | 'admin';
      readonly display_name?: string;
      readonly email?: string | null;
      readonly provider?: 'local' | 'google';
      readonly workspace_id?: number;
    };
    readonly response: { readonly user: User };
  };
  readonly 'PUT /api/auth/users': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly id: number;
      readonly display_name?: string;
      readonly role?: 'viewer' | 'operator' | 'admin';
      readonly email?: string | null;
      readonly avatar_url?: string | null;
      readonly is_approved?: 0 | 1 | boolean;
      readonly workspace_id?: number;
      readonly password?: '' | string;
    };
    readonly response: { readonly user: User };
  };
  readonly 'DELETE /api/auth/users': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly id: number };
    readonly response: { readonly success: true };
  };
  readonly 'DELETE /api/people/{username}': {
    readonly query: { readonly id?: number };
    readonly body: undefined;
    readonly response: {
      readonly success: true;
      readonly user_id: number;
      readonly access_request_ids: readonly number[];
    };
  };
  readonly 'GET /api/auth/access-requests': {
    readonly query: {
      readonly status?: string;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: { readonly requests: readonly AccessRequest[] };
  };
  readonly 'POST /api/auth/access-requests': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly id: number;
      readonly request_id?: number;
      readonly action: 'approve' | 'reject';
      readonly role?: 'viewer' | 'operator' | 'admin';
      readonly note?: string | null;
    };
    readonly response: { readonly success: true; readonly ok: true; readonly user?: User };
  };
  readonly 'GET /api/tokens/rotate': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly masked_key: string | null;
      readonly source: 'database' | 'environment' | 'none';
      readonly last_rotated_at: number | null;
      readonly last_rotated_by: string | null;
      readonly configured: boolean;
    };
  };
  readonly 'POST /api/tokens/rotate': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: {
      readonly key: string;
      readonly masked_key: string;
      readonly rotated_at: number;
      readonly rotated_by: string;
      readonly message: string;
    };
  };
  readonly 'GET /api/agents': {
    readonly query: {
      readonly status?: string;
      readonly role?: string;
      readonly show_hidden?: string;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly agents: readonly AgentWithTasks[];
      readonly total: number;
      readonly page: number;
      readonly limit: number;
    };
  };
  readonly 'POST /api/agents': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly role: string;
      readonly session_key?: string | null;
      readonly soul_content?: string | null;
      readonly status?: 'online' | 'offline' | 'busy' | 'idle' | 'error';
      readonly config?: Readonly<Record<string, unknown>>;
      readonly template?: string | null;
      readonly gateway_config?: Readonly<Record<string, unknown>>;
      readonly write_to_gateway?: boolean;
      readonly runtime_type?: 'hermes' | 'claude' | 'codex' | 'custom' | null;
    };
    readonly response: { readonly agent: AgentWithTasks; readonly warning?: string };
  };
  readonly 'PUT /api/agents': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly status?: 'online' | 'offline' | 'busy' | 'idle' | 'error';
      readonly last_activity?: string;
      readonly config?: Readonly<Record<string, unknown>>;
      readonly session_key?: string | null;
      readonly soul_content?: string | null;
      readonly role?: string;
      readonly runtime_type?: 'hermes' | 'claude' | 'codex' | 'custom' | '' | null;
    };
    readonly response: { readonly success: true };
  };
  readonly 'GET /api/agents/{id}': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly agent: Agent };
  };
  readonly 'PUT /api/agents/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name?: string;
      readonly role?: string;
      readonly status?: string;
      readonly config?: Readonly<Record<string, unknown>>;
      readonly session_key?: string | null;
      readonly soul_content?: string | null;
      readonly runtime_type?: 'hermes' | 'claude' | 'codex' | 'custom' | '' | null;
      readonly gateway_config?: Readonly<Record<string, unknown>>;
      readonly write_to_gateway?: boolean;
    };
    readonly response: { readonly success: true; readonly agent: Agent };
  };
  readonly 'DELETE /api/agents/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly remove_workspace?: boolean } | undefined;
    readonly response: {
      readonly success: true;
      readonly deleted: string;
      readonly remove_workspace: boolean;
      readonly warning?: string;
    };
  };
  readonly 'POST /api/agents/{id}/hide': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly success: true; readonly agent_id: number; readonly hidden: boolean };
  };
  readonly 'DELETE /api/agents/{id}/hide': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly success: true; readonly agent_id: number; readonly hidden: boolean };
  };
  readonly 'GET /api/agents/{id}/diagnostics': {
    readonly query: {
      readonly hours?: number;
      readonly section?: string;
      readonly privileged?: '1';
      readonly evidence?: '1';
      readonly limit?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly agent: { readonly id: number; readonly name: string; readonly role: string; readonly status: string };
      readonly timeframe: { readonly hours: number; readonly since: number; readonly until: number };
      readonly summary?: {
        readonly tasks_completed: number;
        readonly tasks_total: number;
        readonly activity_count: number;
        readonly heartbeats: number;
        readonly error_count: number;
        readonly error_rate_percent: number;
      };
      readonly tasks?: {
        readonly by_status: Readonly<Record<string, number>>;
        readonly by_priority: Readonly<Record<string, number>>;
        readonly recent_completed: readonly {
          readonly id: number;
          readonly title: string;
          readonly priority: string;
          readonly updated_at: number;
          readonly completed_at: number | null;
        }[];
        readonly throughput_per_day: number;
      };
      readonly errors?: {
        readonly by_type: readonly { readonly type: string; readonly count: number }[];
        readonly total: number;
        readonly recent: readonly {
          readonly id: number;
          readonly type: string;
          readonly description: string;
          readonly data: Readonly<Record<string, unknown>>;
          readonly created_at: number;
        }[];
      };
      readonly activity?: {
        readonly by_type: readonly { readonly type: string; readonly count: number }[];
        readonly timeline: readonly { readonly timestamp: number; readonly hour: string; readonly count: number }[];
      };
      readonly status?: {
        readonly seconds_by_status: Readonly<Record<string, number>>;
        readonly since: number;
        readonly spans: readonly {
          readonly status: string;
          readonly since: number;
          readonly until: number;
          readonly position: number;
        }[];
      };
      readonly trends?: {
        readonly current_period: {
          readonly since: number;
          readonly until: number;
          readonly activities: number;
          readonly errors: number;
          readonly tasks_completed: number;
        };
        readonly previous_period: {
          readonly since: number;
          readonly until: number;
          readonly activities: number;
          readonly errors: number;
          readonly tasks_completed: number;
        };
        readonly change: {
          readonly activities_pct: number;
          readonly errors_pct: number;
          readonly tasks_completed_pct: number;
        };
        readonly alerts: readonly { readonly level: 'info' | 'warning'; readonly message: string }[];
      };
      readonly tokens?: {
        readonly by_model: readonly {
          readonly model: string;
          readonly input_tokens: number;
          readonly output_tokens: number;
          readonly request_count: number;
        }[];
        readonly total: { readonly input_tokens: number; readonly output_tokens: number; readonly requests: number };
      };
      readonly evidence?: Readonly<Record<string, Derivation>>;
    };
  };
  readonly 'POST /api/agents/register': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly role?: 'coder' | 'reviewer' | 'tester' | 'devops' | 'researcher' | 'assistant' | 'agent';
      readonly capabilities?: readonly string[];
      readonly framework?: string | null;
    };
    readonly response: {
      readonly agent: {
        readonly id: number;
        readonly name: string;
        readonly role: string;
        readonly status: 'idle';
        readonly created_at: number;
      };
      readonly registered: boolean;
      readonly message: string;
    };
  };
  readonly 'GET /api/agents/{id}/attribution': {
    readonly query: {
      readonly hours?: number;
      readonly section?: string;
      readonly privileged?: '1';
      readonly evidence?: '1';
      readonly cursor?: string;
      readonly limit?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly agent_name: string;
      readonly timeframe: { readonly hours: number; readonly since: number; readonly until: number };
      readonly access_scope: 'self' | 'privileged';
      readonly identity?: {
        readonly id: number;
        readonly name: string;
        readonly role: string;
        readonly status: string;
        readonly last_seen: number | null;
        readonly last_activity: string | null;
        readonly created_at: number;
        readonly session_key: '***' | null;
        readonly has_soul: boolean;
        readonly config_keys: readonly string[];
        readonly lifetime_stats: {
          readonly tasks_total: number;
          readonly tasks_completed: number;
          readonly tasks_active: number;
          readonly comments_authored: number;
        };
      };
      readonly audit?: {
        readonly total_activities: number;
        readonly heartbeats: number;
        readonly by_type: Readonly<Record<string, number>>;
        readonly activities: readonly {
          readonly id: number;
          readonly type: string;
          readonly description: string;
          readonly data: Readonly<Record<string, unknown>> | null;
          readonly metadata: Readonly<Record<string, unknown>> | null;
          readonly created_at: number;
          readonly position: number;
          readonly attributed_by: 'key' | 'header' | 'call';
          readonly entity_type: string;
          readonly entity_id: number;
        }[];
        readonly total_entries: number;
        readonly by_action: Readonly<Record<string, number>>;
        readonly audit_log_entries: readonly {
          readonly id: number;
          readonly action: string;
          readonly actor: string;
          readonly detail: Readonly<Record<string, unknown>> | null;
          readonly created_at: number;
          readonly position: number;
          readonly attributed_by: 'key' | 'header' | 'call';
        }[];
      };
      readonly mutations?: {
        readonly task_mutations: readonly {
          readonly id: number;
          readonly type: string;
          readonly description: string;
          readonly data: Readonly<Record<string, unknown>> | null;
          readonly metadata: Readonly<Record<string, unknown>> | null;
          readonly created_at: number;
          readonly position: number;
          readonly attributed_by: 'key' | 'header' | 'call';
          readonly entity_type: string;
          readonly entity_id: number;
        }[];
        readonly comments: readonly {
          readonly id: number;
          readonly task_id: number;
          readonly content: string;
          readonly created_at: number;
          readonly mentions: readonly string[];
          readonly task_title: string | null;
          readonly content_preview: string;
          readonly position: number;
          readonly attributed_by: 'key' | 'header' | 'call';
        }[];
        readonly status_changes: readonly {
          readonly id: number;
          readonly type: string;
          readonly description: string;
          readonly data: Readonly<Record<string, unknown>> | null;
          readonly metadata: Readonly<Record<string, unknown>> | null;
          readonly created_at: number;
          readonly position: number;
          readonly attributed_by: 'key' | 'header' | 'call';
        }[];
        readonly summary: {
          readonly task_mutations_count: number;
          readonly comments_count: number;
          readonly status_changes_count: number;
        };
      };
      readonly cost?: {
        readonly by_model: readonly {
          readonly model: string;
          readonly request_count: number;
          readonly input_tokens: number;
          readonly output_tokens: number;
          readonly cost: number;
          readonly estimated_cost: number;
        }[];
        readonly total: {
          readonly input_tokens: number;
          readonly output_tokens: number;
          readonly cost: number;
          readonly estimated_cost: number;
          readonly requests: number;
        };
        readonly daily_trend: readonly {
          readonly date: string;
          readonly day_bucket: number;
          readonly input_tokens: number;
          readonly output_tokens: number;
          readonly cost: number;
          readonly estimated_cost: number;
          readonly requests: number;
        }[];
      };
      readonly evidence?: Readonly<Record<string, Evidence>>;
    };
  };
  readonly 'GET /api/agents/{id}/heartbeat': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly status: 'HEARTBEAT_OK' | 'WORK_ITEMS_FOUND';
      readonly agent: string;
      readonly checked_at: number;
      readonly message?: string;
      readonly work_items?: readonly {
        readonly type: 'assigned_tasks' | 'notifications' | 'urgent_activities';
        readonly count: number;
        readonly items: readonly Readonly<Record<string, unknown>>[];
      }[];
      readonly total_items?: number;
      readonly pending_tasks: readonly Task[];
      readonly messages: readonly AgentMessage[];
    };
  };
  readonly 'POST /api/agents/{id}/heartbeat': {
    readonly query: Readonly<Record<string, never>>;
    readonly body:
      | {
          readonly connection_id?: string | null;
          readonly token_usage?: {
            readonly model?: string;
            readonly inputTokens?: number;
            readonly outputTokens?: number;
            readonly cacheReadTokens?: number | null;
            readonly cacheWriteTokens?: number | null;
            readonly taskId?: number | null;
          } | null;
        }
      | undefined;
    readonly response: {
      readonly status: 'HEARTBEAT_OK' | 'WORK_ITEMS_FOUND';
      readonly agent: string;
      readonly checked_at: number;
      readonly message?: string;
      readonly work_items?: readonly {
        readonly type: 'assigned_tasks' | 'notifications' | 'urgent_activities';
        readonly count: number;
        readonly items: readonly Readonly<Record<string, unknown>>[];
      }[];
      readonly total_items?: number;
      readonly pending_tasks: readonly Task[];
      readonly messages: readonly AgentMessage[];
      readonly success: true;
      readonly token_recorded: boolean;
    };
  };
  readonly 'POST /api/agents/{id}/wake': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly reason?: string | null; readonly message?: string | null } | undefined;
    readonly response: { readonly success: true; readonly message: string; readonly session_key: string | null };
  };
  readonly 'GET /api/agents/{id}/memory': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly agent: { readonly id: number; readonly name: string; readonly role: string };
      readonly working_memory: string;
      readonly source: 'database' | 'none';
      readonly updated_at: number;
      readonly size: number;
    };
  };
  readonly 'PUT /api/agents/{id}/memory': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly working_memory?: string | null; readonly append?: boolean | null };
    readonly response: {
      readonly success: true;
      readonly message: string;
      readonly working_memory: string;
      readonly saved_to_workspace: false;
      readonly updated_at: number;
      readonly size: number;
    };
  };
  readonly 'DELETE /api/agents/{id}/memory': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: {
      readonly success: true;
      readonly message: string;
      readonly working_memory: '';
      readonly updated_at: number;
    };
  };
  readonly 'GET /api/agents/{id}/soul': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly agent: { readonly id: number; readonly name: string; readonly role: string };
      readonly soul_content: string;
      readonly source: 'database' | 'none';
      readonly available_templates: readonly string[];
      readonly updated_at: number;
    };
  };
  readonly 'PUT /api/agents/{id}/soul': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly soul_content?: string; readonly template_name?: string | null };
    readonly response: {
      readonly success: true;
      readonly message: string;
      readonly soul_content: string;
      readonly saved_to_workspace: false;
      readonly updated_at: number;
    };
  };
  readonly 'PATCH /api/agents/{id}/soul': {
    readonly query: { readonly template?: string };
    readonly body: undefined;
    readonly response:
      | {
          readonly templates: readonly { readonly name: string; readonly description: string; readonly size: number }[];
        }
      | { readonly template_name: string; readonly content: string };
  };
  readonly 'POST /api/agents/message': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly from: string;
      readonly to: string;
      readonly content?: string;
      readonly message?: string;
      readonly type?: string;
    };
    readonly response: { readonly success: true; readonly id: number };
  };
  readonly 'GET /api/agents/comms': {
    readonly query: {
      readonly agent?: string;
      readonly since?: number;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly messages: readonly AgentMessage[];
      readonly total: number;
      readonly graph: {
        readonly edges: readonly {
          readonly from_agent: string;
          readonly to_agent: string;
          readonly message_count: number;
          readonly last_message_at: number;
        }[];
        readonly agentStats: readonly { readonly agent: string; readonly sent: number; readonly received: number }[];
      };
      readonly source: { readonly mode: 'empty' | 'live'; readonly seededCount: number; readonly liveCount: number };
    };
  };
  readonly 'GET /api/agents/sync': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly inConfig: number;
      readonly inMC: number;
      readonly newAgents: readonly string[];
      readonly updatedAgents: readonly string[];
      readonly onlyInMC: readonly string[];
    };
  };
  readonly 'POST /api/agents/sync': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: {
      readonly synced: number;
      readonly created: number;
      readonly updated: number;
      readonly agents: readonly {
        readonly id: string;
        readonly name: string;
        readonly action: 'created' | 'updated' | 'unchanged';
      }[];
      readonly message?: string;
    };
  };
  readonly 'GET /api/chat/conversations': {
    readonly query: {
      readonly agent?: string;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly conversations: readonly Conversation[];
      readonly total: number;
      readonly page: number;
      readonly limit: number;
    };
  };
  readonly 'GET /api/chat/messages': {
    readonly query: {
      readonly conversation_id?: number;
      readonly from_agent?: string;
      readonly to_agent?: string;
      readonly since?: number;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly messages: readonly ChatMessage[];
      readonly total: number;
      readonly page: number;
      readonly limit: number;
    };
  };
  readonly 'POST /api/chat/messages': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly content: string;
      readonly conversation_id?: number;
      readonly recipient?: string | null;
      readonly to?: string | null;
      readonly message_type?: string;
      readonly metadata?: Readonly<Record<string, unknown>> | null;
      readonly from?: string | null;
      readonly forward?: boolean;
      readonly sessionKey?: string | null;
      readonly attachments?:
        | readonly { readonly name?: string; readonly type?: string; readonly dataUrl: string }[]
        | null;
    };
    readonly response: {
      readonly message: ChatMessage;
      readonly forward: {
        readonly attempted: boolean;
        readonly delivered: boolean;
        readonly reason?: 'no_recipient' | 'no_active_session' | 'gateway_send_failed';
        readonly session?: string;
        readonly runId?: string;
      } | null;
    };
  };
  readonly 'GET /api/chat/messages/{id}': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly message: ChatMessage };
  };
  readonly 'PATCH /api/chat/messages/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly read?: boolean } | undefined;
    readonly response: { readonly message: ChatMessage };
  };
  readonly 'POST /api/connect': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly tool_name: string;
      readonly agent_name: string;
      readonly tool_version?: string | null;
      readonly agent_role?: string | null;
      readonly metadata?: Readonly<Record<string, unknown>> | null;
    };
    readonly response: {
      readonly connection_id: string;
      readonly agent_id: number;
      readonly agent_name: string;
      readonly status: 'connected';
      readonly sse_url: string;
      readonly heartbeat_url: string;
      readonly token_report_url: string;
    };
  };
  readonly 'GET /api/connect': {
    readonly query: { readonly limit?: number; readonly offset?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly connections: readonly Connection[] };
  };
  readonly 'DELETE /api/connect': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly connection_id: string };
    readonly response: { readonly status: 'disconnected'; readonly connection_id: string };
  };
  readonly 'GET /api/claude/sessions': {
    readonly query: {
      readonly active?: string;
      readonly project?: string;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly sessions: readonly CliSession[];
      readonly total: number;
      readonly stats: {
        readonly total_sessions: number;
        readonly active_sessions: number;
        readonly total_input_tokens: number;
        readonly total_output_tokens: number;
        readonly total_estimated_cost: number;
        readonly unique_projects: number;
      };
    };
  };
  readonly 'POST /api/claude/sessions': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly session_id: string;
      readonly agent_name?: string | null;
      readonly model?: string | null;
      readonly project_slug?: string | null;
      readonly project_path?: string | null;
      readonly git_branch?: string | null;
      readonly user_messages?: number | null;
      readonly assistant_messages?: number | null;
      readonly tool_uses?: number | null;
      readonly input_tokens?: number | null;
      readonly output_tokens?: number | null;
      readonly estimated_cost?: number | null;
    };
    readonly response: { readonly ok: true; readonly message: string; readonly session: CliSession };
  };
  readonly 'GET /api/sessions': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly sessions: readonly Session[] };
  };
  readonly 'POST /api/sessions': {
    readonly query: { readonly action?: 'set-thinking' | 'set-verbose' | 'set-reasoning' | 'set-label' };
    readonly body: {
      readonly sessionKey: string;
      readonly action?: 'set-thinking' | 'set-verbose' | 'set-reasoning' | 'set-label';
      readonly level?: string;
      readonly label?: string;
    };
    readonly response: {
      readonly success: true;
      readonly action: string;
      readonly sessionKey: string;
      readonly result: { readonly requested: true; readonly value: string | null } | Readonly<Record<string, unknown>>;
    };
  };
  readonly 'DELETE /api/sessions': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly sessionKey: string };
    readonly response: {
      readonly success: true;
      readonly sessionKey: string;
      readonly result: { readonly deleted: true } | Readonly<Record<string, unknown>>;
    };
  };
  readonly 'POST /api/sessions/{id}/control': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly action: 'monitor' | 'pause' | 'resume' | 'terminate' | 'kill' };
    readonly response: {
      readonly success: true;
      readonly action: string;
      readonly session: string;
      readonly result: { readonly requested: true } | Readonly<Record<string, unknown>>;
    };
  };
  readonly 'GET /api/chat/session-prefs': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly prefs: Readonly<Record<string, { readonly name?: string; readonly color?: string }>>;
    };
  };
  readonly 'PATCH /api/chat/session-prefs': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly key: string;
      readonly name?: string | null;
      readonly color?: 'slate' | 'blue' | 'green' | 'amber' | 'red' | 'purple' | 'pink' | 'teal' | '' | null;
    };
    readonly response: { readonly ok: true; readonly pref?: { readonly name?: string; readonly color?: string } };
  };
  readonly 'GET /api/agents/{id}/keys': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly agent: { readonly id: number; readonly name: string };
      readonly keys: readonly AgentKey[];
    };
  };
  readonly 'POST /api/agents/{id}/keys': {
    readonly query: Readonly<Record<string, never>>;
    readonly body:
      | {
          readonly name?: string;
          readonly scopes?: readonly (
            | 'viewer'
            | 'operator'
            | 'admin'
            | 'agent:self'
            | 'agent:diagnostics'
            | 'agent:attribution'
            | 'agent:heartbeat'
            | 'agent:messages'
          )[];
          readonly expires_at?: number;
          readonly expires_in_days?: number;
        }
      | undefined;
    readonly response: {
      readonly key: {
        readonly id: number;
        readonly name: string;
        readonly key_prefix: string;
        readonly scopes: readonly string[];
        readonly expires_at: number | null;
        readonly created_at: number;
      };
      readonly api_key: string;
    };
  };
  readonly 'DELETE /api/agents/{id}/keys': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly key_id: number };
    readonly response: { readonly success: true; readonly key_id: number; readonly revoked_at: number };
  };
  readonly 'GET /api/adapters': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly adapters: readonly string[] };
  };
  readonly 'POST /api/adapters': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly framework: 'generic' | 'crewai' | 'langgraph' | 'autogen' | 'claude-sdk';
      readonly action: 'register' | 'heartbeat' | 'report' | 'assignments' | 'disconnect';
      readonly payload?: Readonly<Record<string, unknown>>;
    };
    readonly response:
      | { readonly ok: true; readonly action: string; readonly framework: string }
      | {
          readonly assignments: readonly {
            readonly taskId: string;
            readonly description: string;
            readonly priority: number;
          }[];
          readonly framework: string;
        };
  };
  readonly 'GET /api/projects': {
    readonly query: {
      readonly includeArchived?: string;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: { readonly projects: readonly ListedProject[] };
  };
  readonly 'POST /api/projects': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly slug?: string | null;
      readonly ticket_prefix?: string | null;
      readonly description?: string | null;
      readonly github_repo?: string | null;
      readonly deadline?: number | null;
      readonly color?: string | null;
    };
    readonly response: { readonly project: Project };
  };
  readonly 'GET /api/projects/{id}': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly project: ListedProject };
  };
  readonly 'PATCH /api/projects/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name?: string;
      readonly ticket_prefix?: string;
      readonly status?: 'active' | 'archived';
      readonly description?: string | null;
      readonly github_repo?: string | null;
      readonly deadline?: number | null;
      readonly color?: string | null;
      readonly github_sync_enabled?: boolean | 0 | 1;
      readonly github_labels_initialized?: boolean | 0 | 1;
      readonly github_default_branch?: string;
      readonly assigned_agents?: readonly string[];
    };
    readonly response: { readonly project: ProjectWithAgents };
  };
  readonly 'DELETE /api/projects/{id}': {
    readonly query: { readonly mode?: 'archive' | 'delete' };
    readonly body: undefined;
    readonly response: { readonly success: true; readonly mode: 'archive' | 'delete' };
  };
  readonly 'GET /api/projects/{id}/tasks': {
    readonly query: { readonly limit?: number; readonly offset?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly project: {
        readonly id: number;
        readonly workspace_id: number;
        readonly name: string;
        readonly slug: string;
        readonly description: string | null;
        readonly ticket_prefix: string;
        readonly ticket_counter: number;
        readonly status: string;
        readonly created_at: number;
        readonly updated_at: number;
      };
      readonly tasks: readonly Task[];
    };
  };
  readonly 'GET /api/projects/{id}/agents': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly assignments: readonly ProjectAssignment[] };
  };
  readonly 'POST /api/projects/{id}/agents': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly agent_name: string; readonly role?: string };
    readonly response: { readonly success: true };
  };
  readonly 'DELETE /api/projects/{id}/agents': {
    readonly query: { readonly agent_name: string };
    readonly body: undefined;
    readonly response: { readonly success: true };
  };
  readonly 'GET /api/mentions': {
    readonly query: {
      readonly q?: string;
      readonly type?: 'user' | 'agent';
      readonly limit?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: { readonly mentions: readonly MentionTarget[]; readonly total: number; readonly q: string };
  };
  readonly 'GET /api/tasks/outcomes': {
    readonly query: { readonly timeframe?: string; readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly timeframe: string;
      readonly summary: {
        readonly total_done: number;
        readonly with_outcome: number;
        readonly by_outcome: {
          readonly success: number;
          readonly failed: number;
          readonly partial: number;
          readonly abandoned: number;
          readonly unknown: number;
        };
        readonly avg_retry_count: number;
        readonly avg_time_to_resolution_seconds: number;
        readonly success_rate: number;
      };
      readonly by_agent: Readonly<
        Record<
          string,
          {
            readonly success: number;
            readonly failed: number;
            readonly partial: number;
            readonly abandoned: number;
            readonly unknown: number;
            readonly total: number;
            readonly success_rate: number;
          }
        >
      >;
      readonly by_priority: Readonly<
        Record<
          string,
          {
            readonly success: number;
            readonly failed: number;
            readonly partial: number;
            readonly abandoned: number;
            readonly unknown: number;
            readonly total: number;
            readonly success_rate: number;
          }
        >
      >;
      readonly common_errors: readonly { readonly error_message: string; readonly count: number }[];
      readonly record_count: number;
    };
  };
  readonly 'GET /api/tasks/regression': {
    readonly query: {
      readonly beta_start?: string;
      readonly cutover?: string;
      readonly lookback_seconds?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly metric_definitions: { readonly p95_task_latency_seconds: string; readonly intervention_rate: string };
      readonly params: { readonly beta_start: number; readonly lookback_seconds: number };
      readonly windows: {
        readonly baseline: {
          readonly label: 'baseline' | 'post';
          readonly start: number;
          readonly end: number;
          readonly sample_size: number;
          readonly latency_seconds: {
            readonly p50: number | null;
            readonly p95: number | null;
            readonly avg: number | null;
          };
          readonly interventions: { readonly count: number; readonly rate: number };
        };
        readonly post: {
          readonly label: 'baseline' | 'post';
          readonly start: number;
          readonly end: number;
          readonly sample_size: number;
          readonly latency_seconds: {
            readonly p50: number | null;
            readonly p95: number | null;
            readonly avg: number | null;
          };
          readonly interventions: { readonly count: number; readonly rate: number };
        };
      };
      readonly deltas: { readonly p95_latency_seconds: number | null; readonly intervention_rate: number };
    };
  };
  readonly 'GET /api/workflows': {
    readonly query: { readonly limit?: number; readonly offset?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly templates: readonly Workflow[] };
  };
  readonly 'POST /api/workflows': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly task_prompt: string;
      readonly description?: string;
      readonly model?: string;
      readonly timeout_seconds?: number;
      readonly agent_role?: string;
      readonly tags?: readonly string[];
    };
    readonly response: { readonly template: Workflow };
  };
  readonly 'PUT /api/workflows': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly id: number;
      readonly name?: string;
      readonly task_prompt?: string;
      readonly description?: string | null;
      readonly model?: string;
      readonly timeout_seconds?: number;
      readonly agent_role?: string | null;
      readonly tags?: readonly string[];
    };
    readonly response: { readonly template: Workflow };
  };
  readonly 'DELETE /api/workflows': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly id: number };
    readonly response: { readonly success: true };
  };
  readonly 'GET /api/pipelines': {
    readonly query: { readonly limit?: number; readonly offset?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly pipelines: readonly ListedPipeline[] };
  };
  readonly 'POST /api/pipelines': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly steps: readonly { readonly template_id: number; readonly on_failure?: 'stop' | 'continue' }[];
      readonly description?: string | null;
    };
    readonly response: { readonly pipeline: Pipeline };
  };
  readonly 'PUT /api/pipelines': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly id: number;
      readonly name?: string;
      readonly steps?: readonly { readonly template_id: number; readonly on_failure?: 'stop' | 'continue' }[];
      readonly description?: string | null;
    };
    readonly response: { readonly pipeline: Pipeline };
  };
  readonly 'DELETE /api/pipelines': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly id: number };
    readonly response: { readonly success: true };
  };
  readonly 'GET /api/pipelines/run': {
    readonly query: {
      readonly id?: number;
      readonly pipeline_id?: number;
      readonly limit?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: { readonly runs: readonly ListedPipelineRun[] } | { readonly run: PipelineRun };
  };
  readonly 'POST /api/pipelines/run': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly action?: 'start' | 'advance' | 'cancel';
      readonly pipeline_id?: number;
      readonly run_id?: number;
      readonly success?: boolean | null;
      readonly error?: string | null;
      readonly step_index?: number;
    };
    readonly response: {
      readonly run: {
        readonly id: number;
        readonly pipeline_id?: number;
        readonly status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
        readonly current_step?: number;
        readonly steps_snapshot: readonly PipelineStepState[];
        readonly spawn?: PipelineSpawn;
      };
      readonly run_id: number;
      readonly status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
    };
  };
  readonly 'GET /api/tasks': {
    readonly query: {
      readonly status?: string;
      readonly assigned_to?: string;
      readonly priority?: string;
      readonly project_id?: number;
      readonly sort?: 'created_at' | 'updated_at' | 'priority' | 'due_date';
      readonly order?: 'asc' | 'desc';
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly tasks: readonly ListedTask[];
      readonly total: number;
      readonly page: number;
      readonly limit: number;
    };
  };
  readonly 'POST /api/tasks': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly title: string;
      readonly description?: string;
      readonly status?:
        | 'backlog'
        | 'inbox'
        | 'assigned'
        | 'awaiting_owner'
        | 'in_progress'
        | 'review'
        | 'quality_review'
        | 'done'
        | 'failed';
      readonly priority?: 'critical' | 'high' | 'medium' | 'low';
      readonly project_id?: number;
      readonly assigned_to?: string;
      readonly created_by?: string;
      readonly due_date?: number;
      readonly estimated_hours?: number;
      readonly actual_hours?: number;
      readonly outcome?: 'success' | 'failed' | 'partial' | 'abandoned';
      readonly error_message?: string;
      readonly resolution?: string;
      readonly feedback_rating?: number;
      readonly feedback_notes?: string;
      readonly retry_count?: number;
      readonly completed_at?: number;
      readonly tags?: readonly string[];
      readonly metadata?: {
        readonly implementation_repo?: string;
        readonly code_location?: string;
        readonly recurrence?: {
          readonly cron_expr?: string;
          readonly natural_text?: string;
          readonly enabled?: boolean;
        } | null;
      };
    };
    readonly response: { readonly task: Task };
  };
  readonly 'PUT /api/tasks': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly tasks: readonly {
        readonly id: number;
        readonly status:
          | 'backlog'
          | 'inbox'
          | 'assigned'
          | 'awaiting_owner'
          | 'in_progress'
          | 'review'
          | 'quality_review'
          | 'done'
          | 'failed';
      }[];
    };
    readonly response: { readonly success: true; readonly updated: number };
  };
  readonly 'GET /api/tasks/{id}': {
    readonly query: {
      readonly include?: 'history';
      readonly history_limit?: number;
      readonly history_before?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly task: Task;
      readonly history?: readonly HistoryEntry[];
      readonly history_before?: number | null;
    };
  };
  readonly 'DELETE /api/tasks/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly success: true };
  };
  readonly 'PUT /api/tasks/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly title?: string;
      readonly description?: string;
      readonly status?:
        | 'backlog'
        | 'inbox'
        | 'assigned'
        | 'awaiting_owner'
        | 'in_progress'
        | 'review'
        | 'quality_review'
        | 'done'
        | 'failed';
      readonly priority?: 'critical' | 'high' | 'medium' | 'low';
      readonly project_id?: number;
      readonly assigned_to?: string;
      readonly created_by?: string;
      readonly due_date?: number;
      readonly estimated_hours?: number;
      readonly actual_hours?: number;
      readonly outcome?: 'success' | 'failed' | 'partial' | 'abandoned';
      readonly error_message?: string;
      readonly resolution?: string;
      readonly feedback_rating?: number;
      readonly feedback_notes?: string;
      readonly retry_count?: number;
      readonly completed_at?: number;
      readonly tags?: readonly string[];
      readonly metadata?: {
        readonly implementation_repo?: string;
        readonly code_location?: string;
        readonly recurrence?: {
          readonly cron_expr?: string;
          readonly natural_text?: string;
          readonly enabled?: boolean;
        } | null;
      };
    };
    readonly response: { readonly task: Task; readonly unchanged?: true };
  };
  readonly 'GET /api/tasks/{id}/comments': {
    readonly query: { readonly after?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly comments: readonly Comment[];
      readonly total: number;
      readonly next_after: number | null;
    };
  };
  readonly 'POST /api/tasks/{id}/comments': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly content: string;
      readonly parent_id?: number;
      readonly author?: string;
      readonly task_id?: number;
    };
    readonly response: { readonly comment: Comment; readonly auto_assigned_to?: string };
  };
  readonly 'POST /api/tasks/{id}/broadcast': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly message: string };
    readonly response: {
      readonly sent: number;
      readonly skipped: number;
      readonly success: true;
      readonly delivered_to: readonly string[];
    };
  };
  readonly 'GET /api/tasks/{id}/branch': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly branch: string | null;
      readonly pr_number: number | null;
      readonly pr_state: string | null;
      readonly repo: string | null;
    };
  };
  readonly 'POST /api/tasks/{id}/branch': {
    readonly query: Readonly<Record<string, never>>;
    readonly body:
      | { readonly action?: 'create-pr'; readonly base?: string; readonly title?: string; readonly body?: string }
      | undefined;
    readonly response:
      | { readonly branch: string; readonly url: string }
      | { readonly pr_number: number; readonly pr_url: string; readonly branch: string };
  };
  readonly 'GET /api/tasks/queue': {
    readonly query: { readonly agent?: string; readonly max_capacity?: number };
    readonly body: undefined;
    readonly response: {
      readonly task: QueuedTask | null;
      readonly reason: 'continue_current' | 'at_capacity' | 'assigned' | 'no_tasks_available';
      readonly agent: string;
      readonly timestamp: number;
    };
  };
  readonly 'GET /api/quality-review': {
    readonly query: { readonly taskIds?: string; readonly taskId?: string; readonly as_of?: string };
    readonly body: undefined;
    readonly response:
      | { readonly reviews: readonly QualityReview[] }
      | {
          readonly latest: Readonly<
            Record<
              string,
              {
                readonly status: 'approved' | 'rejected';
                readonly reviewer: string;
                readonly reviewed_by: ReviewedBy;
                readonly created_at: number;
              } | null
            >
          >;
        };
  };
  readonly 'POST /api/quality-review': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly taskId?: number;
      readonly reviewer?: string;
      readonly status: 'approved' | 'rejected';
      readonly notes: string;
    };
    readonly response: {
      readonly success: true;
      readonly id: number;
      readonly reviewer: string;
      readonly opens_gate: boolean;
      readonly message?: string;
    };
  };
  readonly 'GET /api/webhooks': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly webhooks: readonly Webhook[] };
  };
  readonly 'POST /api/webhooks': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly url: string;
      readonly events?: readonly string[];
      readonly format?: 'json' | 'cloudevents';
      readonly generate_secret?: boolean;
    };
    readonly response: {
      readonly id: number;
      readonly name: string;
      readonly url: string;
      readonly secret: string | null;
      readonly events: readonly string[];
      readonly format: 'json' | 'cloudevents';
      readonly enabled: true;
      readonly message: string;
    };
  };
  readonly 'PUT /api/webhooks': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly id: number;
      readonly name?: string;
      readonly url?: string;
      readonly events?: readonly string[];
      readonly format?: 'json' | 'cloudevents';
      readonly enabled?: boolean;
      readonly regenerate_secret?: boolean;
      readonly reset_circuit?: boolean;
    };
    readonly response: { readonly success: true; readonly secret?: string; readonly message?: string };
  };
  readonly 'DELETE /api/webhooks': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly id: number };
    readonly response: { readonly success: true; readonly deleted: 1 };
  };
  readonly 'GET /api/webhooks/deliveries': {
    readonly query: { readonly webhook_id?: number; readonly limit?: number; readonly offset?: number };
    readonly body: undefined;
    readonly response: { readonly deliveries: readonly WebhookDelivery[]; readonly total: number };
  };
  readonly 'POST /api/webhooks/test': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly id: number };
    readonly response: WebhookDeliveryResult;
  };
  readonly 'POST /api/webhooks/retry': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly delivery_id: number };
    readonly response: WebhookDeliveryResult;
  };
  readonly 'GET /api/webhooks/verify-docs': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: {
      readonly algorithm: 'HMAC-SHA256';
      readonly header: 'X-MC-Signature';
      readonly format: 'sha256=<hex-digest>';
      readonly description: string;
      readonly verification_steps: readonly string[];
      readonly example_nodejs: string;
      readonly standard_webhooks: {
        readonly headers: readonly string[];
        readonly format: string;
        readonly description: string;
      };
    };
  };
  readonly 'GET /api/alerts': {
    readonly query: { readonly evidence?: '1'; readonly limit?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly rules: readonly AlertRule[];
      readonly evidence?: Readonly<Record<string, Derivation>>;
    };
  };
  readonly 'POST /api/alerts': {
    readonly query: { readonly evidence?: '1'; readonly limit?: number };
    readonly body:
      | {
          readonly action?: 'create';
          readonly name: string;
          readonly description?: string | null;
          readonly enabled?: boolean;
          readonly entity_type: 'agent' | 'task' | 'session' | 'activity';
          readonly condition_field: string;
          readonly condition_operator:
            | 'equals'
            | 'not_equals'
            | 'greater_than'
            | 'less_than'
            | 'contains'
            | 'count_above'
            | 'count_below'
            | 'age_minutes_above';
          readonly condition_value: string;
          readonly action_type?: 'notification' | 'webhook';
          readonly action_config?: Readonly<Record<string, unknown>>;
          readonly cooldown_minutes?: number;
          readonly cooldown_per?: 'rule' | 'record';
        }
      | { readonly action: 'evaluate' }
      | {
          readonly action: 'backtest';
          readonly id?: number;
          readonly rule?: {
            readonly entity_type: 'agent' | 'task' | 'session' | 'activity';
            readonly condition_field: string;
            readonly condition_operator:
              | 'equals'
              | 'not_equals'
              | 'greater_than'
              | 'less_than'
              | 'contains'
              | 'count_above'
              | 'count_below'
              | 'age_minutes_above';
            readonly condition_value: string;
            readonly cooldown_minutes?: number;
            readonly cooldown_per?: 'rule' | 'record';
          };
          readonly hours?: number;
        };
    readonly response:
      | {
          readonly evaluated: number;
          readonly triggered: number;
          readonly results: readonly {
            readonly rule_id: number;
            readonly rule_name: string;
            readonly triggered: boolean;
            readonly reason: string;
          }[];
          readonly evidence?: Readonly<Record<string, Derivation>>;
        }
      | {
          readonly rule_id: number | null;
          readonly hours: number;
          readonly since: number;
          readonly until: number;
          readonly complete: boolean;
          readonly evaluated: number;
          readonly triggered: number;
          readonly triggers: readonly number[];
          readonly message: string;
          readonly evidence?: Readonly<Record<string, Derivation>>;
        }
      | { readonly rule: AlertRule; readonly evidence?: Readonly<Record<string, Derivation>> };
  };
  readonly 'PUT /api/alerts': {
    readonly query: { readonly evidence?: '1'; readonly limit?: number };
    readonly body: {
      readonly id: number;
      readonly name?: string;
      readonly description?: string | null;
      readonly enabled?: boolean;
      readonly entity_type?: 'agent' | 'task' | 'session' | 'activity';
      readonly condition_field?: string;
      readonly condition_operator?:
        | 'equals'
        | 'not_equals'
        | 'greater_than'
        | 'less_than'
        | 'contains'
        | 'count_above'
        | 'count_below'
        | 'age_minutes_above';
      readonly condition_value?: string;
      readonly action_type?: 'notification' | 'webhook';
      readonly action_config?: Readonly<Record<string, unknown>>;
      readonly cooldown_minutes?: number;
      readonly cooldown_per?: 'rule' | 'record';
    };
    readonly response: { readonly rule: AlertRule; readonly evidence?: Readonly<Record<string, Derivation>> };
  };
  readonly 'DELETE /api/alerts': {
    readonly query: { readonly id?: number };
    readonly body: { readonly id?: number } | undefined;
    readonly response: { readonly deleted: true };
  };
  readonly 'POST /api/tokens': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly id?: string | null;
      readonly model: string;
      readonly sessionId: string;
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly cacheReadTokens?: number | null;
      readonly cacheWriteTokens?: number | null;
      readonly operation?: string;
      readonly duration?: number | null;
      readonly taskId?: number | null;
      readonly timestamp?: number | null;
    };
    readonly response: { readonly success: true; readonly record: TokenRecord };
  };
  readonly 'GET /api/tokens': {
    readonly query: {
      readonly evidence?: '1';
      readonly limit?: number;
      readonly action?: 'list' | 'stats' | 'agent-costs' | 'task-costs' | 'trends' | 'export';
      readonly timeframe?: string;
      readonly before?: number;
      readonly format?: 'json' | 'csv';
      readonly bom?: '0' | '1';
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response:
      | {
          readonly usage: readonly TokenRecord[];
          readonly total: number;
          readonly timeframe: string;
          readonly evidence?: Readonly<Record<string, Derivation>>;
        }
      | {
          readonly usage: readonly TokenRecord[];
          readonly summary: TokenStats;
          readonly models: Readonly<Record<string, TokenStats>>;
          readonly sessions: Readonly<Record<string, TokenStats>>;
          readonly evidence?: Readonly<Record<string, Derivation>>;
        }
      | {
          readonly summary: TokenStats;
          readonly models: Readonly<Record<string, TokenStats>>;
          readonly sessions: Readonly<Record<string, TokenStats>>;
          readonly agents: Readonly<Record<string, TokenStats>>;
          readonly timeframe: string;
          readonly recordCount: number;
          readonly evidence?: Readonly<Record<string, Derivation>>;
        }
      | {
          readonly summary: TokenStats;
          readonly tasks: readonly {
            readonly taskId: number;
            readonly title: string;
            readonly status: string;
            readonly priority: string;
            readonly assignedTo: string | null;
            readonly project: {
              readonly id: number | null;
              readonly name: string | null;
              readonly slug: string | null;
              readonly ticketRef: string | null;
            };
            readonly stats: TokenStats;
            readonly models: Readonly<Record<string, TokenStats>>;
            readonly timeline: readonly { readonly date: string; readonly cost: number; readonly tokens: number }[];
          }[];
          readonly agents: Readonly<
            Record<
              string,
              { readonly stats: TokenStats; readonly taskCount: number; readonly taskIds: readonly number[] }
            >
          >;
          readonly projects: Readonly<
            Record<
              string,
              { readonly stats: TokenStats; readonly taskCount: number; readonly taskIds: readonly number[] }
            >
          >;
          readonly unattributed: TokenStats;
          readonly timeframe: string;
          readonly recordCount: number;
          readonly attributedRecordCount: number;
          readonly evidence?: Readonly<Record<string, Derivation>>;
        }
      | {
          readonly agents: Readonly<
            Record<
              string,
              {
                readonly stats: TokenStats;
                readonly models: Readonly<Record<string, TokenStats>>;
                readonly sessions: readonly string[];
                readonly timeline: readonly { readonly date: string; readonly cost: number; readonly tokens: number }[];
              }
            >
          >;
          readonly timeframe: string;
          readonly recordCount: number;
          readonly evidence?: Readonly<Record<string, Derivation>>;
        }
      | {
          readonly trends: readonly {
            readonly timestamp: string;
            readonly tokens: number;
            readonly cost: number;
            readonly requests: number;
          }[];
          readonly timeframe: string;
          readonly evidence?: Readonly<Record<string, Derivation>>;
        };
  };
  readonly 'POST /api/tokens/batch': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly reports: readonly {
        readonly id?: string | null;
        readonly model: string;
        readonly sessionId: string;
        readonly inputTokens: number;
        readonly outputTokens: number;
        readonly cacheReadTokens?: number | null;
        readonly cacheWriteTokens?: number | null;
        readonly operation?: string;
        readonly duration?: number | null;
        readonly taskId?: number | null;
        readonly timestamp?: number | null;
      }[];
    };
    readonly response: {
      readonly success: true;
      readonly recorded: number;
      readonly repeated: number;
      readonly ids: readonly string[];
    };
  };
  readonly 'GET /api/tokens/by-agent': {
    readonly query: {
      readonly evidence?: '1';
      readonly limit?: number;
      readonly days?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly agents: readonly {
        readonly agent: string;
        readonly agent_id: number | null;
        readonly total_input_tokens: number;
        readonly total_output_tokens: number;
        readonly total_tokens: number;
        readonly total_cost: number;
        readonly estimated_cost: number;
        readonly session_count: number;
        readonly request_count: number;
        readonly last_active: string;
        readonly models: readonly {
          readonly model: string;
          readonly input_tokens: number;
          readonly output_tokens: number;
          readonly request_count: number;
          readonly cost: number;
          readonly estimated_cost: number;
        }[];
      }[];
      readonly summary: {
        readonly total_cost: number;
        readonly estimated_cost: number;
        readonly total_tokens: number;
        readonly agent_count: number;
        readonly days: number;
      };
      readonly evidence?: Readonly<Record<string, Derivation>>;
    };
  };
  readonly 'GET /api/tokens/prices': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly prices: readonly TokenPrice[]; readonly subscribed_providers: readonly string[] };
  };
  readonly 'PUT /api/tokens/prices': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly model: string;
      readonly input: number;
      readonly output: number;
      readonly cache_read?: number | null;
      readonly cache_write?: number | null;
    };
    readonly response: { readonly success: true; readonly price: TokenPrice };
  };
  readonly 'DELETE /api/tokens/prices': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly model: string };
    readonly response: { readonly success: true };
  };
  readonly 'GET /api/gateway-config': {
    readonly query: { readonly action?: 'schema'; readonly as_of?: string };
    readonly body: undefined;
    readonly response:
      | {
          readonly path: string;
          readonly config: Readonly<Record<string, unknown>>;
          readonly raw_size: number;
          readonly hash: string;
        }
      | Readonly<Record<string, unknown>>;
  };
  readonly 'PUT /api/gateway-config': {
    readonly query: { readonly action?: 'apply' | 'update' };
    readonly body: Readonly<Record<string, unknown>> | undefined;
    readonly response:
      | { readonly success: true; readonly updated: readonly string[]; readonly count: number; readonly hash: string }
      | { readonly ok: true };
  };
  readonly 'GET /api/gateways': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: { readonly gateways: readonly Gateway[] };
  };
  readonly 'POST /api/gateways': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly url?: string;
      readonly host?: string;
      readonly port?: number;
      readonly token?: string;
      readonly is_primary?: boolean;
      readonly agents?: readonly { readonly name: string; readonly role?: string }[];
    };
    readonly response: { readonly gateway: Gateway; readonly agents_registered?: number };
  };
  readonly 'PUT /api/gateways': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly id: number;
      readonly name?: string;
      readonly url?: string;
      readonly host?: string;
      readonly port?: number;
      readonly token?: string;
      readonly is_primary?: boolean;
      readonly status?: 'unknown' | 'online' | 'offline' | 'error';
      readonly last_seen?: number | null;
      readonly latency?: number | null;
      readonly sessions_count?: number;
      readonly agents_count?: number;
      readonly agents?: readonly { readonly name: string; readonly role?: string }[];
    };
    readonly response: { readonly gateway: Gateway; readonly agents_registered?: number; readonly success: true };
  };
  readonly 'DELETE /api/gateways': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly id: number };
    readonly response: { readonly success: true; readonly deleted: boolean };
  };
  readonly 'POST /api/gateways/health': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly gateway_id?: number } | undefined;
    readonly response: {
      readonly results: readonly {
        readonly id: number;
        readonly name: string;
        readonly status: 'unknown' | 'online' | 'offline' | 'error';
        readonly latency: number | null;
        readonly agents: readonly string[];
        readonly sessions_count: number;
        readonly gateway_version: string | null;
        readonly error?: string;
      }[];
      readonly probed_at: number;
    };
  };
  readonly 'GET /api/gateways/health/history': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly history: readonly {
        readonly gatewayId: number;
        readonly name: string;
        readonly entries: readonly {
          readonly status: 'unknown' | 'online' | 'offline' | 'error';
          readonly latency: number | null;
          readonly probed_at: number;
          readonly error?: string;
        }[];
      }[];
    };
  };
  readonly 'POST /api/gateways/connect': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly id: number };
    readonly response: {
      readonly id: number;
      readonly ws_url: string;
      readonly token: string;
      readonly token_set: boolean;
    };
  };
  readonly 'GET /api/exec-approvals': {
    readonly query: { readonly action?: 'allowlist'; readonly as_of?: string };
    readonly body: undefined;
    readonly response:
      | { readonly approvals: readonly Readonly<Record<string, unknown>>[] }
      | { readonly agents: Readonly<Record<string, readonly { readonly pattern: string }[]>>; readonly hash: string };
  };
  readonly 'POST /api/exec-approvals': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly id: string;
      readonly action: 'approve' | 'deny' | 'always_allow';
      readonly reason?: string;
    };
    readonly response: Readonly<Record<string, unknown>>;
  };
  readonly 'PUT /api/exec-approvals': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly agents: Readonly<Record<string, readonly { readonly pattern: string }[]>>;
      readonly hash?: string;
    };
    readonly response: { readonly ok: true; readonly hash: string };
  };
  readonly 'GET /api/export': {
    readonly query: {
      readonly type: 'tasks' | 'agents' | 'activities' | 'audit' | 'pipelines' | 'all';
      readonly format?: 'json' | 'csv';
      readonly bom?: '0' | '1';
      readonly since?: number;
      readonly until?: number;
      readonly limit?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response:
      | {
          readonly type: 'tasks' | 'agents' | 'activities' | 'audit' | 'pipelines' | 'all';
          readonly exported_at: string;
          readonly data:
            | readonly Readonly<Record<string, string | number | null>>[]
            | {
                readonly tasks: readonly Readonly<Record<string, string | number | null>>[];
                readonly agents: readonly Readonly<Record<string, string | number | null>>[];
                readonly activities: readonly Readonly<Record<string, string | number | null>>[];
                readonly audit: readonly Readonly<Record<string, string | number | null>>[];
                readonly pipelines: readonly Readonly<Record<string, string | number | null>>[];
              };
          readonly count: number;
        }
      | string;
  };
  readonly 'GET /api/cron': {
    readonly query: {
      readonly action?: 'list' | 'logs' | 'history';
      readonly job?: string;
      readonly jobId?: string;
      readonly page?: number;
      readonly query?: string;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response:
      | { readonly jobs: readonly CronJob[] }
      | {
          readonly logs: readonly {
            readonly timestamp: number;
            readonly message: string;
            readonly level: 'info' | 'error';
            readonly job: string;
          }[];
        }
      | {
          readonly entries: readonly {
            readonly jobId: string;
            readonly status: 'success' | 'late' | 'error' | 'running';
            readonly timestamp: number;
            readonly durationMs?: number;
            readonly error?: string;
          }[];
          readonly total: number;
          readonly hasMore: boolean;
          readonly page: number;
        };
  };
  readonly 'POST /api/cron': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly action: 'toggle' | 'trigger' | 'add' | 'remove' | 'clone';
      readonly name?: string;
      readonly jobId?: string;
      readonly jobName?: string;
      readonly schedule?: string;
      readonly timezone?: string;
      readonly staggerSeconds?: number;
      readonly command?: string;
      readonly agentId?: string;
      readonly enabled?: boolean;
      readonly mode?: 'force' | 'due';
    };
    readonly response: {
      readonly success: true;
      readonly enabled?: boolean;
      readonly ran?: boolean;
      readonly status?: 'success' | 'late' | 'error' | 'running';
      readonly message?: string;
      readonly clonedName?: string;
    };
  };
  readonly 'GET /api/backup': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: {
      readonly backups: readonly Backup[];
      readonly running?: { readonly started_at: number; readonly position: number; readonly head: number | null };
    };
  };
  readonly 'POST /api/backup': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: {
      readonly success: true;
      readonly path: string;
      readonly size_bytes: number;
      readonly encrypted_for: readonly string[];
      readonly backup: Backup;
    };
  };
  readonly 'DELETE /api/backup': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly name: string };
    readonly response: { readonly success: true };
  };
  readonly 'GET /api/resume': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly paused: boolean; readonly since: number | null };
  };
  readonly 'POST /api/resume': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly success: true };
  };
  readonly 'GET /api/cleanup': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly retention: {
        readonly activities: number;
        readonly auditLog: number;
        readonly logs: number;
        readonly notifications: number;
        readonly pipelineRuns: number;
        readonly tokenUsage: number;
        readonly gatewaySessions: number;
      };
      readonly preview: readonly {
        readonly table: string;
        readonly retention_days: number;
        readonly cutoff_date?: string;
        readonly stale_count: number;
        readonly note?: string;
      }[];
    };
  };
  readonly 'POST /api/cleanup': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly older_than_days?: number; readonly dry_run?: boolean } | undefined;
    readonly response: {
      readonly success: true;
      readonly deleted: {
        readonly activities: number;
        readonly notifications: number;
        readonly pipeline_runs: number;
        readonly token_usage: number;
        readonly audit_log: number;
      };
      readonly dry_run: boolean;
      readonly total_deleted: number;
      readonly complete: boolean;
      readonly results: readonly {
        readonly table: 'activities' | 'notifications' | 'pipeline_runs' | 'token_usage' | 'audit_log';
        readonly deleted: number;
        readonly cutoff_date: string;
        readonly retention_days: number;
      }[];
    };
  };
  readonly 'GET /api/settings': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly settings: readonly Setting[];
      readonly grouped: Readonly<Record<string, readonly Setting[]>>;
    };
  };
  readonly 'PUT /api/settings': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly settings: Readonly<Record<string, unknown>> };
    readonly response: { readonly updated: readonly string[]; readonly count: number };
  };
  readonly 'DELETE /api/settings': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly key: string };
    readonly response: { readonly reset: string; readonly default_value?: string };
  };
  readonly 'GET /api/scheduler': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly tasks: readonly ScheduledTask[] };
  };
  readonly 'POST /api/scheduler': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly task_id?: string; readonly task?: string };
    readonly response: { readonly ok: true; readonly message: string };
  };
  readonly 'GET /api/super/tenants': {
    readonly query: { readonly limit?: number; readonly offset?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly tenants: readonly {
        readonly id: number;
        readonly slug: string;
        readonly display_name: string;
        readonly linux_user: string;
        readonly plan_tier: string;
        readonly status: 'pending' | 'provisioning' | 'decommissioning' | 'active' | 'suspended' | 'error';
        readonly workspace_root: string;
        readonly gateway_port: number | null;
        readonly dashboard_port: number | null;
        readonly config: Readonly<Record<string, unknown>>;
        readonly created_by: string;
        readonly owner_gateway: string | null;
        readonly workspace_id: number;
        readonly created_at: number;
        readonly updated_at: number;
        readonly latest_job_id: number | null;
        readonly latest_job_status:
          | 'queued'
          | 'approved'
          | 'running'
          | 'completed'
          | 'failed'
          | 'rejected'
          | 'cancelled'
          | null;
        readonly latest_job_created_at: number | null;
      }[];
    };
  };
  readonly 'POST /api/super/tenants': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly slug: string;
      readonly display_name?: string;
      readonly name?: string;
      readonly linux_user?: string;
      readonly gateway_port: number;
      readonly dashboard_port?: number | null;
      readonly plan_tier?: string;
      readonly dry_run?: boolean;
      readonly config?: Readonly<Record<string, unknown>>;
      readonly owner_gateway?: string;
    };
    readonly response: {
      readonly tenant: Tenant;
      readonly job: {
        readonly id: number;
        readonly tenant_id: number;
        readonly job_type: 'bootstrap' | 'update' | 'decommission';
        readonly status: 'queued' | 'approved' | 'running' | 'completed' | 'failed' | 'rejected' | 'cancelled';
        readonly dry_run: 0 | 1;
        readonly requested_by: string;
        readonly approved_by: string | null;
        readonly runner_host: string | null;
        readonly idempotency_key: string | null;
        readonly request_json: Readonly<Record<string, unknown>>;
        readonly plan_json: readonly {
          readonly key: string;
          readonly title: string;
          readonly command: readonly (string | null)[];
          readonly requires_root: boolean;
          readonly timeout_ms?: number;
        }[];
        readonly result_json: {
          readonly dry_run: boolean;
          readonly steps_executed: number;
          readonly steps: readonly { readonly key: string; readonly ok: boolean; readonly skipped: boolean }[];
        } | null;
        readonly error_text: string | null;
        readonly started_at: number | null;
        readonly completed_at: number | null;
        readonly created_at: number;
        readonly updated_at: number;
        readonly tenant_slug: string;
        readonly tenant_display_name: string;
        readonly linux_user: string;
        readonly workspace_root: string;
        readonly events: readonly {
          readonly id: number;
          readonly job_id: number;
          readonly level: 'info' | 'warn' | 'error';
          readonly step_key: string | null;
          readonly message: string;
          readonly data: string | null;
          readonly created_at: number;
        }[];
      };
    };
  };
  readonly 'POST /api/super/tenants/{id}/decommission': {
    readonly query: Readonly<Record<string, never>>;
    readonly body:
      | {
          readonly dry_run?: boolean;
          readonly remove_linux_user?: boolean;
          readonly remove_state_dirs?: boolean;
          readonly reason?: string;
        }
      | undefined;
    readonly response: {
      readonly tenant: Tenant;
      readonly job: {
        readonly id: number;
        readonly tenant_id: number;
        readonly job_type: 'bootstrap' | 'update' | 'decommission';
        readonly status: 'queued' | 'approved' | 'running' | 'completed' | 'failed' | 'rejected' | 'cancelled';
        readonly dry_run: 0 | 1;
        readonly requested_by: string;
        readonly approved_by: string | null;
        readonly runner_host: string | null;
        readonly idempotency_key: string | null;
        readonly request_json: Readonly<Record<string, unknown>>;
        readonly plan_json: readonly {
          readonly key: string;
          readonly title: string;
          readonly command: readonly (string | null)[];
          readonly requires_root: boolean;
          readonly timeout_ms?: number;
        }[];
        readonly result_json: {
          readonly dry_run: boolean;
          readonly steps_executed: number;
          readonly steps: readonly { readonly key: string; readonly ok: boolean; readonly skipped: boolean }[];
        } | null;
        readonly error_text: string | null;
        readonly started_at: number | null;
        readonly completed_at: number | null;
        readonly created_at: number;
        readonly updated_at: number;
        readonly tenant_slug: string;
        readonly tenant_display_name: string;
        readonly linux_user: string;
        readonly workspace_root: string;
        readonly events: readonly {
          readonly id: number;
          readonly job_id: number;
          readonly level: 'info' | 'warn' | 'error';
          readonly step_key: string | null;
          readonly message: string;
          readonly data: string | null;
          readonly created_at: number;
        }[];
      };
    };
  };
  readonly 'GET /api/super/provision-jobs': {
    readonly query: {
      readonly tenant_id?: number;
      readonly status?: string;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: { readonly jobs: readonly ProvisionJob[] };
  };
  readonly 'POST /api/super/provision-jobs': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly tenant_id: number;
      readonly job_type?: 'bootstrap' | 'update' | 'decommission';
      readonly type?: 'bootstrap' | 'update' | 'decommission';
      readonly dry_run?: boolean;
      readonly plan_json?: readonly {
        readonly key: string;
        readonly title: string;
        readonly command?: readonly string[];
        readonly requires_root?: boolean;
        readonly timeout_ms?: number;
      }[];
      readonly request_json?: Readonly<Record<string, unknown>>;
      readonly params?: Readonly<Record<string, unknown>>;
    };
    readonly response: {
      readonly job: {
        readonly id: number;
        readonly tenant_id: number;
        readonly job_type: 'bootstrap' | 'update' | 'decommission';
        readonly status: 'queued' | 'approved' | 'running' | 'completed' | 'failed' | 'rejected' | 'cancelled';
        readonly dry_run: 0 | 1;
        readonly requested_by: string;
        readonly approved_by: string | null;
        readonly runner_host: string | null;
        readonly idempotency_key: string | null;
        readonly request_json: Readonly<Record<string, unknown>>;
        readonly plan_json: readonly {
          readonly key: string;
          readonly title: string;
          readonly command: readonly (string | null)[];
          readonly requires_root: boolean;
          readonly timeout_ms?: number;
        }[];
        readonly result_json: {
          readonly dry_run: boolean;
          readonly steps_executed: number;
          readonly steps: readonly { readonly key: string; readonly ok: boolean; readonly skipped: boolean }[];
        } | null;
        readonly error_text: string | null;
        readonly started_at: number | null;
        readonly completed_at: number | null;
        readonly created_at: number;
        readonly updated_at: number;
        readonly tenant_slug: string;
        readonly tenant_display_name: string;
        readonly linux_user: string;
        readonly workspace_root: string;
        readonly events: readonly {
          readonly id: number;
          readonly job_id: number;
          readonly level: 'info' | 'warn' | 'error';
          readonly step_key: string | null;
          readonly message: string;
          readonly data: string | null;
          readonly created_at: number;
        }[];
      };
    };
  };
  readonly 'GET /api/super/provision-jobs/{id}': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly job: {
        readonly id: number;
        readonly tenant_id: number;
        readonly job_type: 'bootstrap' | 'update' | 'decommission';
        readonly status: 'queued' | 'approved' | 'running' | 'completed' | 'failed' | 'rejected' | 'cancelled';
        readonly dry_run: 0 | 1;
        readonly requested_by: string;
        readonly approved_by: string | null;
        readonly runner_host: string | null;
        readonly idempotency_key: string | null;
        readonly request_json: Readonly<Record<string, unknown>>;
        readonly plan_json: readonly {
          readonly key: string;
          readonly title: string;
          readonly command: readonly (string | null)[];
          readonly requires_root: boolean;
          readonly timeout_ms?: number;
        }[];
        readonly result_json: {
          readonly dry_run: boolean;
          readonly steps_executed: number;
          readonly steps: readonly { readonly key: string; readonly ok: boolean; readonly skipped: boolean }[];
        } | null;
        readonly error_text: string | null;
        readonly started_at: number | null;
        readonly completed_at: number | null;
        readonly created_at: number;
        readonly updated_at: number;
        readonly tenant_slug: string;
        readonly tenant_display_name: string;
        readonly linux_user: string;
        readonly workspace_root: string;
        readonly events: readonly {
          readonly id: number;
          readonly job_id: number;
          readonly level: 'info' | 'warn' | 'error';
          readonly step_key: string | null;
          readonly message: string;
          readonly data: string | null;
          readonly created_at: number;
        }[];
      };
    };
  };
  readonly 'POST /api/super/provision-jobs/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly action: 'approve' | 'reject' | 'cancel'; readonly reason?: string };
    readonly response: {
      readonly job: {
        readonly id: number;
        readonly tenant_id: number;
        readonly job_type: 'bootstrap' | 'update' | 'decommission';
        readonly status: 'queued' | 'approved' | 'running' | 'completed' | 'failed' | 'rejected' | 'cancelled';
        readonly dry_run: 0 | 1;
        readonly requested_by: string;
        readonly approved_by: string | null;
        readonly runner_host: string | null;
        readonly idempotency_key: string | null;
        readonly request_json: Readonly<Record<string, unknown>>;
        readonly plan_json: readonly {
          readonly key: string;
          readonly title: string;
          readonly command: readonly (string | null)[];
          readonly requires_root: boolean;
          readonly timeout_ms?: number;
        }[];
        readonly result_json: {
          readonly dry_run: boolean;
          readonly steps_executed: number;
          readonly steps: readonly { readonly key: string; readonly ok: boolean; readonly skipped: boolean }[];
        } | null;
        readonly error_text: string | null;
        readonly started_at: number | null;
        readonly completed_at: number | null;
        readonly created_at: number;
        readonly updated_at: number;
        readonly tenant_slug: string;
        readonly tenant_display_name: string;
        readonly linux_user: string;
        readonly workspace_root: string;
        readonly events: readonly {
          readonly id: number;
          readonly job_id: number;
          readonly level: 'info' | 'warn' | 'error';
          readonly step_key: string | null;
          readonly message: string;
          readonly data: string | null;
          readonly created_at: number;
        }[];
      };
    };
  };
  readonly 'POST /api/super/provision-jobs/{id}/run': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: {
      readonly job: {
        readonly id: number;
        readonly tenant_id: number;
        readonly job_type: 'bootstrap' | 'update' | 'decommission';
        readonly status: 'queued' | 'approved' | 'running' | 'completed' | 'failed' | 'rejected' | 'cancelled';
        readonly dry_run: 0 | 1;
        readonly requested_by: string;
        readonly approved_by: string | null;
        readonly runner_host: string | null;
        readonly idempotency_key: string | null;
        readonly request_json: Readonly<Record<string, unknown>>;
        readonly plan_json: readonly {
          readonly key: string;
          readonly title: string;
          readonly command: readonly (string | null)[];
          readonly requires_root: boolean;
          readonly timeout_ms?: number;
        }[];
        readonly result_json: {
          readonly dry_run: boolean;
          readonly steps_executed: number;
          readonly steps: readonly { readonly key: string; readonly ok: boolean; readonly skipped: boolean }[];
        } | null;
        readonly error_text: string | null;
        readonly started_at: number | null;
        readonly completed_at: number | null;
        readonly created_at: number;
        readonly updated_at: number;
        readonly tenant_slug: string;
        readonly tenant_display_name: string;
        readonly linux_user: string;
        readonly workspace_root: string;
        readonly events: readonly {
          readonly id: number;
          readonly job_id: number;
          readonly level: 'info' | 'warn' | 'error';
          readonly step_key: string | null;
          readonly message: string;
          readonly data: string | null;
          readonly created_at: number;
        }[];
      };
    };
  };
  readonly 'GET /api/workspaces': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly workspaces: readonly Workspace[];
      readonly active_workspace_id: number;
      readonly tenant_id: number;
    };
  };
  readonly 'POST /api/workspaces': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly name: string;
      readonly slug?: string | null;
      readonly brand?: string | null;
      readonly isolation?: 'shared' | 'strict';
    };
    readonly response: { readonly workspace: Workspace };
  };
  readonly 'GET /api/workspaces/{id}': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly workspace: {
        readonly id: number;
        readonly slug: string;
        readonly name: string;
        readonly tenant_id: number;
        readonly brand: string | null;
        readonly isolation: 'shared' | 'strict';
        readonly created_at: number;
        readonly updated_at: number;
        readonly agent_count: number;
      };
    };
  };
  readonly 'PUT /api/workspaces/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly name: string; readonly brand?: string | null; readonly isolation?: 'shared' | 'strict' };
    readonly response: { readonly workspace: Workspace };
  };
  readonly 'DELETE /api/workspaces/{id}': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly success: true; readonly deleted: string; readonly agents_moved_to: number };
  };
  readonly 'GET /api/activities': {
    readonly query: {
      readonly type?: string;
      readonly actor?: string;
      readonly entity_type?: string;
      readonly since?: number;
      readonly limit?: number;
      readonly offset?: number;
      readonly stats?: string;
      readonly hours?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response:
      | { readonly activities: readonly Activity[]; readonly total: number; readonly hasMore: boolean }
      | {
          readonly timeframe: string;
          readonly activityByType: readonly { readonly type: string; readonly count: number }[];
          readonly topActors: readonly { readonly actor: string; readonly activity_count: number }[];
          readonly timeline: readonly { readonly timestamp: number; readonly count: number; readonly hour: string }[];
        };
  };
  readonly 'GET /api/audit': {
    readonly query: {
      readonly action?: string;
      readonly actor?: string;
      readonly since?: number;
      readonly until?: number;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly entries: readonly AuditEntry[];
      readonly total: number;
      readonly limit: number;
      readonly offset: number;
    };
  };
  readonly 'GET /api/notifications': {
    readonly query: {
      readonly recipient: string;
      readonly unread_only?: 'true' | 'false';
      readonly unread?: 'true' | 'false';
      readonly type?: string;
      readonly limit?: number;
      readonly offset?: number;
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly notifications: readonly ListedNotification[];
      readonly total: number;
      readonly page: number;
      readonly limit: number;
      readonly unreadCount: number;
    };
  };
  readonly 'PUT /api/notifications': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly recipient?: string; readonly markAllRead?: boolean; readonly ids?: readonly number[] };
    readonly response: { readonly success: true; readonly markedAsRead: number };
  };
  readonly 'DELETE /api/notifications': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly ids?: readonly number[]; readonly recipient?: string; readonly olderThan?: number };
    readonly response: { readonly success: true; readonly deleted: number };
  };
  readonly 'POST /api/notifications': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly action: 'mark-delivered' | 'mark_read' | 'mark_all_read' | 'dismiss';
      readonly agent?: string;
      readonly id?: number;
      readonly recipient?: string;
    };
    readonly response: {
      readonly success: true;
      readonly delivered?: number;
      readonly notifications?: readonly Notification[];
    };
  };
  readonly 'POST /api/notifications/deliver': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly agent_filter?: string;
      readonly limit?: number;
      readonly dry_run?: boolean;
      readonly agent?: string;
      readonly title?: string;
      readonly message?: string;
      readonly type?: string;
    };
    readonly response:
      | {
          readonly status: 'success';
          readonly message: string;
          readonly processed: 0;
          readonly delivered: 0;
          readonly errors: readonly {
            readonly notification_id: number;
            readonly recipient: string;
            readonly error: string;
          }[];
        }
      | {
          readonly status: 'success';
          readonly message: string;
          readonly total_processed: number;
          readonly delivered: number;
          readonly errors: number;
          readonly dry_run: boolean;
          readonly delivery_results: readonly {
            readonly notification_id: number;
            readonly recipient: string;
            readonly session_key: string | null;
            readonly status: 'delivered' | 'dry_run';
            readonly delivered_at?: number;
            readonly stdout?: string;
            readonly message?: string;
          }[];
          readonly error_details: readonly {
            readonly notification_id: number;
            readonly recipient: string;
            readonly error: string;
          }[];
        }
      | { readonly success: true };
  };
  readonly 'GET /api/notifications/deliver': {
    readonly query: { readonly agent?: string; readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly statistics: {
        readonly total: number;
        readonly delivered: number;
        readonly undelivered: number;
        readonly delivery_rate: number;
      };
      readonly agents_with_pending: readonly {
        readonly recipient: string;
        readonly session_key: string | null;
        readonly pending_count: number;
      }[];
      readonly recent_deliveries: readonly {
        readonly recipient: string;
        readonly type: string;
        readonly title: string;
        readonly delivered_at: number;
        readonly created_at: number;
      }[];
      readonly agent_filter: string | null;
    };
  };
  readonly 'GET /api/logs': {
    readonly query: {
      readonly action?: 'recent' | 'sources' | 'tail';
      readonly limit?: number;
      readonly level?: 'info' | 'warn' | 'error' | 'debug';
      readonly session?: string;
      readonly search?: string;
      readonly source?: string;
      readonly since?: number;
    };
    readonly body: undefined;
    readonly response: { readonly logs: readonly LogEntry[] } | { readonly sources: readonly string[] };
  };
  readonly 'POST /api/logs': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly action: 'add';
      readonly message: string;
      readonly level?: 'info' | 'warn' | 'error' | 'debug';
      readonly source?: string;
      readonly session?: string;
    };
    readonly response: { readonly success: true; readonly entry: LogEntry };
  };
  readonly 'GET /api/search': {
    readonly query: { readonly q: string; readonly type?: string; readonly limit?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly query: string;
      readonly count: number;
      readonly total: number;
      readonly results: readonly SearchResult[];
    };
  };
  readonly 'GET /api/standup': {
    readonly query: { readonly limit?: number; readonly offset?: number; readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly history: readonly {
        readonly id: string;
        readonly date: string;
        readonly generatedAt: string;
        readonly summary: {
          readonly totalAgents: number;
          readonly totalCompleted: number;
          readonly totalInProgress: number;
          readonly totalAssigned: number;
          readonly totalReview: number;
          readonly totalBlocked: number;
          readonly totalActivity: number;
          readonly overdue: number;
        };
        readonly agentCount: number;
      }[];
      readonly total: number;
      readonly page: number;
      readonly limit: number;
    };
  };
  readonly 'POST /api/standup': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly date?: string; readonly agents?: readonly string[] };
    readonly response: { readonly standup: StandupReport };
  };
  readonly 'GET /api/workload': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly timestamp: number;
      readonly workspace_id: number;
      readonly capacity: {
        readonly active_tasks: number;
        readonly tasks_last_5m: number;
        readonly errors_last_5m: number;
        readonly error_rate_5m: number;
        readonly completions_last_hour: number;
        readonly avg_completion_rate_per_hour: number;
      };
      readonly queue: {
        readonly total_pending: number;
        readonly by_status: {
          readonly inbox: number;
          readonly assigned: number;
          readonly in_progress: number;
          readonly review: number;
          readonly quality_review: number;
        };
        readonly by_priority: {
          readonly low: number;
          readonly medium: number;
          readonly high: number;
          readonly critical: number;
          readonly urgent: number;
        };
        readonly oldest_pending_age_seconds: number | null;
        readonly estimated_wait_seconds: number | null;
        readonly estimated_wait_confidence: 'calculated' | 'unknown';
      };
      readonly tasks: {
        readonly by_status: {
          readonly backlog: number;
          readonly inbox: number;
          readonly assigned: number;
          readonly awaiting_owner: number;
          readonly in_progress: number;
          readonly review: number;
          readonly quality_review: number;
          readonly done: number;
          readonly failed: number;
        };
      };
      readonly agents: {
        readonly total: number;
        readonly online: number;
        readonly busy: number;
        readonly idle: number;
        readonly offline: number;
        readonly busy_ratio: number;
        readonly load_distribution: readonly {
          readonly agent: string;
          readonly assigned: number;
          readonly in_progress: number;
        }[];
      };
      readonly recommendation: {
        readonly action: 'normal' | 'throttle' | 'shed' | 'pause';
        readonly reason: string;
        readonly details: readonly string[];
        readonly submit_ok: boolean;
        readonly suggested_delay_ms: number;
      };
      readonly thresholds: {
        readonly queue_depth_normal: number;
        readonly queue_depth_throttle: number;
        readonly queue_depth_shed: number;
        readonly busy_agent_ratio_throttle: number;
        readonly busy_agent_ratio_shed: number;
        readonly error_rate_throttle: number;
        readonly error_rate_shed: number;
        readonly recent_window_seconds: number;
      };
    };
  };
  readonly 'GET /api/events': {
    readonly query: { readonly since?: string; readonly lastEventId?: string; readonly kind?: string };
    readonly body: undefined;
    readonly response: string;
  };
  readonly 'GET /api/health': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: { readonly status: string; readonly db: string; readonly ts: string };
  };
  readonly 'GET /api/status': {
    readonly query: {
      readonly action?: 'overview' | 'dashboard' | 'health' | 'models' | 'gateway' | 'capabilities';
      readonly as_of?: string;
    };
    readonly body: undefined;
    readonly response:
      | {
          readonly timestamp: number;
          readonly uptime?: number;
          readonly memory?: { readonly total: number; readonly used: number; readonly available: number };
          readonly disk?: {
            readonly total: string;
            readonly used: string;
            readonly available: string;
            readonly usage: string;
          };
          readonly sessions: { readonly total: number; readonly active: number };
          readonly processes: readonly string[];
          readonly db: {
            readonly tasks: { readonly total: number; readonly byStatus: Readonly<Record<string, number>> };
            readonly agents: { readonly total: number; readonly byStatus: Readonly<Record<string, number>> };
            readonly audit: { readonly day: number; readonly week: number; readonly loginFailures: number };
            readonly activities: { readonly day: number };
            readonly notifications: { readonly unread: number };
            readonly pipelines: { readonly active: number; readonly recentDay: number };
            readonly backup?: { readonly name: string; readonly size: number; readonly age_hours: number } | null;
            readonly dbSizeBytes?: number;
            readonly webhookCount: number;
          };
        }
      | {
          readonly timestamp: number;
          readonly uptime?: number;
          readonly memory?: { readonly total: number; readonly used: number; readonly available: number };
          readonly disk?: {
            readonly total: string;
            readonly used: string;
            readonly available: string;
            readonly usage: string;
          };
          readonly sessions: { readonly total: number; readonly active: number };
          readonly processes: readonly string[];
        }
      | {
          readonly status: 'healthy' | 'warning' | 'degraded' | 'unhealthy';
          readonly version: string;
          readonly uptime: number;
          readonly checks: readonly {
            readonly name: string;
            readonly status: 'healthy' | 'warning' | 'critical' | 'unhealthy' | 'error';
            readonly message: string;
            readonly detail?: Readonly<Record<string, number>>;
          }[];
          readonly timestamp: number;
        }
      | {
          readonly models: readonly {
            readonly alias: string;
            readonly name: string;
            readonly provider: string;
            readonly description: string;
            readonly costPerMTok: { readonly input: number; readonly output: number };
          }[];
        }
      | {
          readonly running: boolean;
          readonly port: number;
          readonly pid: null;
          readonly uptime: number;
          readonly version: null;
          readonly connections: number;
          readonly port_listening: boolean;
        }
      | {
          readonly gateway: boolean;
          readonly subscription: null;
          readonly subscriptions: Readonly<Record<string, string>>;
          readonly processUser?: string;
          readonly interfaceMode: string;
          readonly claudeSessions: number;
        };
  };
  readonly 'GET /api/history/events': {
    readonly query: {
      readonly stream?: string;
      readonly type?: string;
      readonly actor?: string;
      readonly correlation?: string;
      readonly causation?: string;
      readonly since?: string;
      readonly until?: string;
      readonly after?: number;
      readonly limit?: number;
      readonly open?: '1';
    };
    readonly body: undefined;
    readonly response: { readonly events: readonly HistoryEvent[]; readonly next_after: number | null };
  };
  readonly 'GET /api/history/events/{id}': {
    readonly query: { readonly open?: '1' };
    readonly body: undefined;
    readonly response: HistoryEvent;
  };
  readonly 'GET /api/history/diff': {
    readonly query: {
      readonly from: string;
      readonly to: string;
      readonly resource?:
        | 'agents'
        | 'agent_texts'
        | 'tasks'
        | 'comments'
        | 'projects'
        | 'workflows'
        | 'pipelines'
        | 'alerts'
        | 'webhooks'
        | 'users';
      readonly id?: string;
      readonly limit?: number;
      readonly cursor?: string;
    };
    readonly body: undefined;
    readonly response: {
      readonly from: number;
      readonly to: number;
      readonly changes: readonly RecordChange[];
      readonly next_cursor: string | null;
    };
  };
  readonly 'GET /api/history/causes/{id}': {
    readonly query: { readonly open?: '1' };
    readonly body: undefined;
    readonly response: {
      readonly event: HistoryEvent;
      readonly causes: readonly (
        | {
            readonly kind: 'event';
            readonly id: string;
            readonly position: number;
            readonly index: number;
            readonly type: string;
            readonly stream: string;
            readonly revision: number;
            readonly at: number;
            readonly actor: { readonly type: string; readonly id: number; readonly name: string };
            readonly data: Readonly<Record<string, unknown>>;
            readonly meta: Readonly<Record<string, unknown>>;
          }
        | {
            readonly kind: 'request' | 'schedule' | 'command line' | 'first start' | 'unknown';
            readonly id: string | null;
            readonly at: number;
            readonly actor: { readonly type: string; readonly id: number; readonly name: string };
            readonly agent: number | null;
            readonly ip: unknown;
            readonly user_agent: string | null;
            readonly via: 'mcp' | null;
          }
      )[];
      readonly effects: readonly HistoryEffect[];
      readonly effects_complete: boolean;
      readonly causes_complete: boolean;
    };
  };
  readonly 'GET /api/history/key': {
    readonly query: { readonly size?: number };
    readonly body: undefined;
    readonly response: string;
  };
  readonly 'GET /api/history/checkpoint': {
    readonly query: { readonly size?: number };
    readonly body: undefined;
    readonly response: string;
  };
  readonly 'GET /api/history/proof': {
    readonly query: { readonly event: string; readonly size?: number };
    readonly body: undefined;
    readonly response: {
      readonly index: number;
      readonly size: number;
      readonly leaf: string;
      readonly path: readonly string[];
    };
  };
  readonly 'GET /api/history/consistency': {
    readonly query: { readonly from: number; readonly to: number };
    readonly body: undefined;
    readonly response: { readonly path: readonly string[] };
  };
  readonly 'GET /api/history/timeline': {
    readonly query: { readonly since?: string; readonly until?: string; readonly bins?: number };
    readonly body: undefined;
    readonly response: {
      readonly since: number;
      readonly until: number;
      readonly first: number | null;
      readonly bins: readonly { readonly at: number; readonly count: number; readonly position: number }[];
    };
  };
  readonly 'GET /api/releases/check': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: {
      readonly updateAvailable: boolean;
      readonly currentVersion: string;
      readonly latestVersion?: string;
      readonly releaseUrl?: string;
      readonly releaseNotes?: string;
      readonly deploymentMode: 'docker' | 'bare-metal';
      readonly error?: string;
    };
  };
  readonly 'GET /api/github': {
    readonly query: {
      readonly action: 'issues' | 'stats';
      readonly repo?: string;
      readonly state?: 'open' | 'closed' | 'all';
      readonly labels?: string;
    };
    readonly body: undefined;
    readonly response:
      | { readonly issues: readonly GithubIssue[]; readonly total: number; readonly repo: string }
      | {
          readonly user: {
            readonly login: string;
            readonly name: string | null;
            readonly avatar_url: string | null;
            readonly public_repos: number;
            readonly followers: number;
            readonly following: number;
          };
          readonly repos: {
            readonly total: number;
            readonly public: number;
            readonly private: number;
            readonly total_stars: number;
            readonly total_forks: number;
            readonly total_open_issues: number;
          };
          readonly topLanguages: readonly { readonly name: string; readonly count: number }[];
          readonly recentRepos: readonly {
            readonly name: string;
            readonly description: string | null;
            readonly language: string | null;
            readonly stars: number;
            readonly forks: number;
            readonly open_issues: number;
            readonly pushed_at: string | null;
            readonly is_fork: boolean;
            readonly is_private: boolean;
            readonly html_url: string;
          }[];
        };
  };
  readonly 'POST /api/github': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: {
      readonly action: 'sync' | 'comment' | 'close' | 'status' | 'init-labels' | 'sync-project';
      readonly repo?: string;
      readonly labels?: string;
      readonly state?: 'open' | 'closed' | 'all';
      readonly assignAgent?: string;
      readonly issueNumber?: number;
      readonly body?: string;
      readonly comment?: string;
      readonly project_id?: number;
    };
    readonly response:
      | {
          readonly imported: number;
          readonly skipped: number;
          readonly errors: number;
          readonly tasks: readonly Task[];
        }
      | { readonly syncs: readonly GithubSync[] }
      | { readonly ok: true; readonly repo: string }
      | { readonly ok: boolean; readonly errors?: readonly string[]; readonly pulled: number; readonly pushed: number }
      | { readonly ok: true };
  };
  readonly 'GET /api/github/sync': {
    readonly query: { readonly as_of?: string };
    readonly body: undefined;
    readonly response: {
      readonly syncs: readonly {
        readonly project_id: number;
        readonly project_name: string;
        readonly github_repo: string | null;
        readonly last_synced_at: number | null;
        readonly total_pushed: number;
        readonly total_pulled: number;
        readonly sync_count: number;
      }[];
      readonly poller?: { readonly running: boolean; readonly interval: number; readonly lastRun?: number };
    };
  };
  readonly 'POST /api/github/sync': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: { readonly action: 'trigger' | 'trigger-all'; readonly project_id?: number };
    readonly response:
      | {
          readonly ok: boolean;
          readonly errors?: readonly string[];
          readonly projects_synced: number;
          readonly pulled: number;
          readonly pushed: number;
        }
      | { readonly ok: boolean; readonly errors?: readonly string[]; readonly pulled: number; readonly pushed: number };
  };
  readonly 'GET /api/docs': {
    readonly query: Readonly<Record<string, never>>;
    readonly body: undefined;
    readonly response: Readonly<Record<string, unknown>>;
  };
}

/** Paths whose GET takes `as_of`. */

export const WITH_PAST: ReadonlySet<string> = new Set([
  '/api/auth/me',
  '/api/auth/users',
  '/api/auth/access-requests',
  '/api/tokens/rotate',
  '/api/agents',
  '/api/agents/{id}',
  '/api/agents/{id}/diagnostics',
  '/api/agents/{id}/attribution',
  '/api/agents/{id}/heartbeat',
  '/api/agents/{id}/memory',
  '/api/agents/{id}/soul',
  '/api/agents/comms',
  '/api/agents/sync',
  '/api/chat/conversations',
  '/api/chat/messages',
  '/api/chat/messages/{id}',
  '/api/connect',
  '/api/claude/sessions',
  '/api/sessions',
  '/api/chat/session-prefs',
  '/api/agents/{id}/keys',
  '/api/projects',
  '/api/projects/{id}',
  '/api/projects/{id}/tasks',
  '/api/projects/{id}/agents',
  '/api/mentions',
  '/api/tasks/outcomes',
  '/api/tasks/regression',
  '/api/workflows',
  '/api/pipelines',
  '/api/pipelines/run',
  '/api/tasks',
  '/api/tasks/{id}',
  '/api/tasks/{id}/comments',
  '/api/tasks/{id}/branch',
  '/api/quality-review',
  '/api/webhooks',
  '/api/alerts',
  '/api/tokens',
  '/api/tokens/by-agent',
  '/api/tokens/prices',
  '/api/gateway-config',
  '/api/gateways',
  '/api/gateways/health/history',
  '/api/exec-approvals',
  '/api/export',
  '/api/cron',
  '/api/cleanup',
  '/api/settings',
  '/api/super/tenants',
  '/api/super/provision-jobs',
  '/api/super/provision-jobs/{id}',
  '/api/workspaces',
  '/api/workspaces/{id}',
  '/api/activities',
  '/api/audit',
  '/api/notifications',
  '/api/notifications/deliver',
  '/api/search',
  '/api/standup',
  '/api/workload',
  '/api/status',
  '/api/github/sync',
]);

export type AccessRequest = {
  readonly id: number;
  readonly username: string;
  readonly email: string;
  readonly reason: string | null;
  readonly status: 'pending' | 'approved' | 'rejected';
  readonly created_at: number;
  readonly provider: 'google';
  readonly provider_user_id: string | null;
  readonly display_name: string | null;
  readonly avatar_url: string | null;
  readonly requested_at: number;
  readonly last_attempt_at: number;
  readonly attempt_count: number;
  readonly reviewed_by: string | null;
  readonly reviewed_at: number | null;
  readonly review_note: string | null;
  readonly approved_user_id: number | null;
};

export type Activity = {
  readonly id: number;
  readonly type: string;
  readonly entity_type: string;
  readonly entity_id: number;
  readonly actor: string;
  readonly description: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly data: Readonly<Record<string, unknown>> | null;
  readonly created_at: number;
  readonly workspace_id: number;
  readonly entity: Readonly<Record<string, unknown>> | null;
};

export type Agent = {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly status: string;
  readonly session_key: string | null;
  readonly soul_content: string | null;
  readonly working_memory: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly last_seen: number | null;
  readonly last_activity: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly source: string;
  readonly hidden: number;
  readonly runtime_type: string | null;
  readonly content_hash: null;
  readonly workspace_path: null;
  readonly workspace_id: number;
};

export type AgentKey = {
  readonly id: number;
  readonly name: string;
  readonly key_prefix: string;
  readonly scopes: readonly string[];
  readonly created_by: string | null;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly last_used_at?: number | null;
  readonly created_at: number;
  readonly updated_at: number;
};

export type AgentMessage = {
  readonly id: number;
  readonly from_agent: string;
  readonly to_agent: string;
  readonly content: string;
  readonly type: string;
  readonly created_at: number;
  readonly message_type: string;
  readonly conversation_id: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly read_at: number | null;
  readonly workspace_id: number;
};

export type AgentWithTasks = {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly status: string;
  readonly session_key: string | null;
  readonly soul_content: string | null;
  readonly working_memory: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly last_seen: number | null;
  readonly last_activity: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly source: string;
  readonly hidden: number;
  readonly runtime_type: string | null;
  readonly content_hash: null;
  readonly workspace_path: null;
  readonly workspace_id: number;
  readonly taskStats: TaskStats;
};

export type AlertRule = {
  readonly id: number;
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
  readonly entity_type: 'agent' | 'task' | 'session' | 'activity';
  readonly condition_field: string;
  readonly condition_operator:
    | 'equals'
    | 'not_equals'
    | 'greater_than'
    | 'less_than'
    | 'contains'
    | 'count_above'
    | 'count_below'
    | 'age_minutes_above';
  readonly condition_value: string;
  readonly action_type: 'notification' | 'webhook';
  readonly action_config: Readonly<Record<string, unknown>>;
  readonly cooldown_minutes: number;
  readonly cooldown_per: 'rule' | 'record';
  readonly last_triggered_at: number | null;
  readonly trigger_count: number;
  readonly created_by: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly workspace_id: number;
};

export type AuditEntry = {
  readonly id: number;
  readonly action: string;
  readonly actor: string;
  readonly actor_id: number | null;
  readonly target_type: string | null;
  readonly target_id: number | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
  readonly ip_address: string | null;
  readonly user_agent: string | null;
  readonly via: 'mcp' | null;
  readonly created_at: number;
  readonly workspace_id: number;
};

export type Backup = { readonly name: string; readonly size: number; readonly created_at: number };

export type Caller = {
  readonly id: number;
  readonly username: string;
  readonly display_name: string;
  readonly role: 'viewer' | 'operator' | 'admin';
  readonly provider: 'local' | 'google' | 'oidc' | 'proxy';
  readonly email: string | null;
  readonly avatar_url: string | null;
  readonly is_approved?: 0 | 1;
  readonly workspace_id: number;
  readonly tenant_id: number;
  readonly created_at?: number;
  readonly updated_at?: number;
  readonly last_login_at?: number | null;
};

export type ChatMessage = {
  readonly id: number;
  readonly conversation_id: number;
  readonly conversation_key: string;
  readonly sender: string;
  readonly recipient: string | null;
  readonly content: string;
  readonly created_at: number;
  readonly from_agent: string;
  readonly to_agent: string | null;
  readonly message_type: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly read_at: number | null;
  readonly workspace_id: number;
};

export type CliSession = {
  readonly id: number;
  readonly session_id: string;
  readonly agent_name: string | null;
  readonly project_slug: string;
  readonly project_path: string | null;
  readonly model: string | null;
  readonly git_branch: string | null;
  readonly user_messages: number;
  readonly assistant_messages: number;
  readonly tool_uses: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly estimated_cost: number;
  readonly first_message_at: string;
  readonly last_message_at: string;
  readonly last_user_prompt: string | null;
  readonly is_active: number;
  readonly scanned_at: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly workspace_id: number;
};

export type Comment = {
  readonly id: number;
  readonly task_id: number;
  readonly author: string;
  readonly content: string;
  readonly created_at: number;
  readonly parent_id: number | null;
  readonly mentions: readonly string[];
  readonly workspace_id: number;
  readonly replies: readonly Comment[];
};

export type Connection = {
  readonly id: number;
  readonly agent_id: number;
  readonly agent_name: string;
  readonly tool_name: string;
  readonly tool_version: string | null;
  readonly connection_id: string;
  readonly status: 'connected' | 'disconnected';
  readonly last_heartbeat: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly agent_status: string;
  readonly agent_role: string;
  readonly workspace_id: number;
};

export type Conversation = {
  readonly id: number;
  readonly participants: readonly string[];
  readonly last_message: string;
  readonly updated_at: number;
  readonly conversation_id: number;
  readonly conversation_key: string;
  readonly last_message_at: number;
  readonly participant_count: number;
  readonly message_count: number;
  readonly unread_count: number;
  readonly created_at: number;
  readonly workspace_id: number;
};

export type CronJob = {
  readonly name: string;
  readonly schedule: string;
  readonly enabled: boolean;
  readonly last_run: number | null;
  readonly last_status: 'success' | 'late' | 'error' | 'running' | null;
  readonly id: string;
  readonly command: string;
  readonly agentId?: string;
  readonly timezone?: string;
  readonly staggerSeconds?: number;
  readonly lastRun: number | null;
  readonly nextRun: number | null;
  readonly lastStatus: 'success' | 'late' | 'error' | 'running' | null;
  readonly lastError: string | null;
};

export type Derivation = {
  readonly total: number;
  readonly rule:
    | 'activities'
    | 'signals'
    | 'actions'
    | 'tasks'
    | 'reports'
    | 'rules'
    | 'triggers'
    | 'replay'
    | 'derived';
  readonly filter?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
  readonly positions?: readonly number[];
  readonly from?: number;
  readonly to?: number;
  readonly types?: readonly string[];
  readonly numbers?: readonly string[];
};

export type Error = {
  readonly error: string;
  readonly details?: readonly string[];
  readonly code?: string;
  readonly hint?: string;
};

export type Evidence = {
  readonly total: number;
  readonly rule?:
    | 'activities'
    | 'signals'
    | 'actions'
    | 'tasks'
    | 'reports'
    | 'rules'
    | 'triggers'
    | 'replay'
    | 'derived';
  readonly filter?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
  readonly positions?: readonly number[];
  readonly from?: number;
  readonly to?: number;
  readonly types?: readonly string[];
  readonly numbers?: readonly string[];
  readonly events: readonly {
    readonly position: number;
    readonly created_at: number;
    readonly count: number;
    readonly input_tokens?: number;
    readonly output_tokens?: number;
    readonly cost?: number;
  }[];
  readonly next: string | null;
};

export type Gateway = {
  readonly id: number;
  readonly name: string;
  readonly url: string;
  readonly status: 'unknown' | 'online' | 'offline' | 'error';
  readonly last_health_check: number | null;
  readonly host: string;
  readonly port: number;
  readonly token: string;
  readonly token_set: boolean;
  readonly is_primary: number;
  readonly last_seen: number | null;
  readonly latency: number | null;
  readonly sessions_count: number;
  readonly agents_count: number;
  readonly created_at: number;
  readonly updated_at: number;
};

export type GithubIssue = {
  readonly number: number;
  readonly title: string;
  readonly body: string | null;
  readonly state: 'open' | 'closed';
  readonly labels: readonly { readonly name: string; readonly color?: string }[];
  readonly assignee: { readonly login: string; readonly avatar_url?: string } | null;
  readonly html_url: string;
  readonly created_at: string;
  readonly updated_at: string;
};

export type GithubSync = {
  readonly id: number;
  readonly repo: string;
  readonly last_synced_at: number;
  readonly issue_count: number;
  readonly sync_direction: string;
  readonly status: 'success' | 'partial' | 'error';
  readonly error: string | null;
  readonly created_at: number;
  readonly project_id: number | null;
  readonly changes_pushed: number;
  readonly changes_pulled: number;
  readonly workspace_id: number;
};

export type HistoryEffect = {
  readonly id: string;
  readonly position: number;
  readonly index: number;
  readonly type: string;
  readonly stream: string;
  readonly revision: number;
  readonly at: number;
  readonly actor: { readonly type: string; readonly id: number; readonly name: string };
  readonly effects: readonly HistoryEffect[];
};

export type HistoryEntry = {
  readonly position: number;
  readonly revision: number;
  readonly at: number;
  readonly type: string;
  readonly actor: string;
  readonly reviewed_by?: ReviewedBy;
  readonly actor_type: string;
  readonly description: string;
  readonly changes: Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;
  readonly cause: string | null;
  readonly reason: string | null;
  readonly request_id: string | null;
  readonly correlation_id: string;
};

export type HistoryEvent = {
  readonly id: string;
  readonly position: number;
  readonly index: number;
  readonly type: string;
  readonly stream: string;
  readonly revision: number;
  readonly at: number;
  readonly actor: { readonly type: string; readonly id: number; readonly name: string };
  readonly data: Readonly<Record<string, unknown>>;
  readonly meta: Readonly<Record<string, unknown>>;
};

export type ListedNotification = {
  readonly id: number;
  readonly recipient: string;
  readonly type: string;
  readonly title: string;
  readonly message: string;
  readonly source_type: string | null;
  readonly source_id: number | null;
  readonly read: boolean;
  readonly read_at: number | null;
  readonly delivered_at: number | null;
  readonly created_at: number;
  readonly workspace_id: number;
  readonly source: Readonly<Record<string, unknown>> | null;
};

export type ListedPipeline = {
  readonly id: number;
  readonly name: string;
  readonly description: string | null;
  readonly steps: readonly {
    readonly template_id: number;
    readonly on_failure: 'stop' | 'continue';
    readonly template_name: string;
  }[];
  readonly created_by: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly use_count: number;
  readonly last_used_at: number | null;
  readonly workspace_id: number;
  readonly runs: {
    readonly total: number;
    readonly completed: number;
    readonly failed: number;
    readonly running: number;
    readonly pipeline_id?: number;
  };
};

export type ListedPipelineRun = {
  readonly id: number;
  readonly pipeline_id: number;
  readonly status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
  readonly current_step: number;
  readonly steps_snapshot: readonly PipelineStepState[];
  readonly started_at: number | null;
  readonly completed_at: number | null;
  readonly triggered_by: string;
  readonly created_at: number;
  readonly workspace_id: number;
  readonly pipeline_name: string;
};

export type ListedProject = {
  readonly id: number;
  readonly workspace_id: number;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  readonly ticket_prefix: string;
  readonly ticket_counter: number;
  readonly status: string;
  readonly github_repo: string | null;
  readonly deadline: number | null;
  readonly color: string | null;
  readonly github_sync_enabled: number;
  readonly github_labels_initialized: number;
  readonly github_default_branch: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly assigned_agents: readonly string[];
  readonly task_count: number;
};

export type ListedTask = {
  readonly id: number;
  readonly title: string;
  readonly description: string | null;
  readonly status: string;
  readonly priority: string;
  readonly project_id: number;
  readonly project_ticket_no: number;
  readonly assigned_to: string | null;
  readonly created_by: string;
  readonly due_date: number | null;
  readonly estimated_hours: number | null;
  readonly actual_hours: number | null;
  readonly outcome: string | null;
  readonly error_message: string | null;
  readonly resolution: string | null;
  readonly feedback_rating: number | null;
  readonly feedback_notes: string | null;
  readonly retry_count: number;
  readonly completed_at: number | null;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly dispatch_attempts: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly workspace_id: number;
  readonly github_issue_number: number | null;
  readonly github_repo: string | null;
  readonly github_synced_at: number | null;
  readonly github_branch: string | null;
  readonly github_pr_number: number | null;
  readonly github_pr_state: string | null;
  readonly project_name: string | null;
  readonly project_prefix: string | null;
  readonly ticket_ref?: string;
  readonly comment_count: number;
};

export type LogEntry = {
  readonly id: string;
  readonly timestamp: number;
  readonly level: 'info' | 'warn' | 'error' | 'debug';
  readonly source: string;
  readonly session?: string;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>> | null;
};

export type MentionTarget = {
  readonly handle: string;
  readonly recipient: string;
  readonly type: 'user' | 'agent';
  readonly display: string;
  readonly role?: string;
};

export type Notification = {
  readonly id: number;
  readonly recipient: string;
  readonly type: string;
  readonly title: string;
  readonly message: string;
  readonly source_type: string | null;
  readonly source_id: number | null;
  readonly read: boolean;
  readonly read_at: number | null;
  readonly delivered_at: number | null;
  readonly created_at: number;
  readonly workspace_id: number;
};

export type Pipeline = {
  readonly id: number;
  readonly name: string;
  readonly description: string | null;
  readonly steps: readonly { readonly template_id: number; readonly on_failure: 'stop' | 'continue' }[];
  readonly created_by: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly use_count: number;
  readonly last_used_at: number | null;
  readonly workspace_id: number;
};

export type PipelineRun = {
  readonly id: number;
  readonly pipeline_id: number;
  readonly status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
  readonly current_step: number;
  readonly steps_snapshot: readonly PipelineStepState[];
  readonly started_at: number | null;
  readonly completed_at: number | null;
  readonly triggered_by: string;
  readonly created_at: number;
  readonly workspace_id: number;
};

export type PipelineSpawn = {
  readonly success: boolean;
  readonly stdout?: string;
  readonly error?: string;
  readonly pending?: true;
};

export type PipelineStepState = {
  readonly step_index: number;
  readonly template_id: number;
  readonly template_name: string;
  readonly on_failure: 'stop' | 'continue';
  readonly status: 'pending' | 'running' | 'completed' | 'failed' | 'skipped';
  readonly spawn_id: string | null;
  readonly started_at: number | null;
  readonly completed_at: number | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly retrying: boolean;
  readonly last_error: string | null;
  readonly output: string | null;
};

export type Project = {
  readonly id: number;
  readonly workspace_id: number;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  readonly ticket_prefix: string;
  readonly ticket_counter: number;
  readonly status: string;
  readonly github_repo: string | null;
  readonly deadline: number | null;
  readonly color: string | null;
  readonly github_sync_enabled: number;
  readonly github_labels_initialized: number;
  readonly github_default_branch: string | null;
  readonly created_at: number;
  readonly updated_at: number;
};

export type ProjectAssignment = {
  readonly id: number;
  readonly project_id: number;
  readonly agent_name: string;
  readonly role: string;
  readonly assigned_at: number;
};

export type ProjectWithAgents = {
  readonly id: number;
  readonly workspace_id: number;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  readonly ticket_prefix: string;
  readonly ticket_counter: number;
  readonly status: string;
  readonly github_repo: string | null;
  readonly deadline: number | null;
  readonly color: string | null;
  readonly github_sync_enabled: number;
  readonly github_labels_initialized: number;
  readonly github_default_branch: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly assigned_agents: readonly string[];
};

export type ProvisionJob = {
  readonly id: number;
  readonly tenant_id: number;
  readonly job_type: 'bootstrap' | 'update' | 'decommission';
  readonly status: 'queued' | 'approved' | 'running' | 'completed' | 'failed' | 'rejected' | 'cancelled';
  readonly dry_run: 0 | 1;
  readonly requested_by: string;
  readonly approved_by: string | null;
  readonly runner_host: string | null;
  readonly idempotency_key: string | null;
  readonly request_json: Readonly<Record<string, unknown>>;
  readonly plan_json: readonly {
    readonly key: string;
    readonly title: string;
    readonly command: readonly (string | null)[];
    readonly requires_root: boolean;
    readonly timeout_ms?: number;
  }[];
  readonly result_json: {
    readonly dry_run: boolean;
    readonly steps_executed: number;
    readonly steps: readonly { readonly key: string; readonly ok: boolean; readonly skipped: boolean }[];
  } | null;
  readonly error_text: string | null;
  readonly started_at: number | null;
  readonly completed_at: number | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly tenant_slug: string;
  readonly tenant_display_name: string;
};

export type QualityReview = {
  readonly id: number;
  readonly task_id: number;
  readonly reviewer: string;
  readonly reviewed_by: ReviewedBy;
  readonly status: 'approved' | 'rejected';
  readonly notes: string;
  readonly created_at: number;
  readonly workspace_id: number;
};

export type QueuedTask = {
  readonly id: number;
  readonly title: string;
  readonly description: string | null;
  readonly status: string;
  readonly priority: string;
  readonly project_id: number;
  readonly project_ticket_no: number;
  readonly assigned_to: string | null;
  readonly created_by: string;
  readonly due_date: number | null;
  readonly estimated_hours: number | null;
  readonly actual_hours: number | null;
  readonly outcome: string | null;
  readonly error_message: string | null;
  readonly resolution: string | null;
  readonly feedback_rating: number | null;
  readonly feedback_notes: string | null;
  readonly retry_count: number;
  readonly completed_at: number | null;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly dispatch_attempts: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly workspace_id: number;
  readonly github_issue_number: number | null;
  readonly github_repo: string | null;
  readonly github_synced_at: number | null;
  readonly github_branch: string | null;
  readonly github_pr_number: number | null;
  readonly github_pr_state: string | null;
};

export type RecordChange = {
  readonly resource:
    | 'agents'
    | 'agent_texts'
    | 'tasks'
    | 'comments'
    | 'projects'
    | 'workflows'
    | 'pipelines'
    | 'alerts'
    | 'webhooks'
    | 'users';
  readonly id: number;
  readonly change: 'added' | 'removed' | 'changed';
  readonly fields: Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>;
  readonly events: readonly string[];
};

export type ReviewedBy = {
  readonly id: number;
  readonly name: string;
  readonly kind: 'user' | 'agent' | 'api' | 'system' | 'anonymous';
};

export type ScheduledTask = {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly lastRun: number | null;
  readonly nextRun: number;
  readonly running: boolean;
  readonly lastResult?: { readonly ok: boolean; readonly message: string; readonly timestamp: number };
};

export type SearchResult = {
  readonly type: 'task' | 'agent' | 'activity' | 'audit' | 'message' | 'webhook' | 'pipeline';
  readonly id: number;
  readonly title: string;
  readonly subtitle?: string;
  readonly excerpt?: string;
  readonly snippet?: string;
  readonly created_at: number;
  readonly relevance: number;
  readonly score: number;
};

export type Session = {
  readonly id: string;
  readonly key: string;
  readonly agent: string;
  readonly kind: string;
  readonly age: string;
  readonly model: string;
  readonly tokens: string;
  readonly channel: string;
  readonly flags: readonly string[];
  readonly active: boolean;
  readonly startTime: number;
  readonly lastActivity: number;
  readonly source: 'gateway' | 'local';
  readonly userMessages?: number;
  readonly assistantMessages?: number;
  readonly toolUses?: number;
  readonly estimatedCost?: number;
  readonly lastUserPrompt?: string | null;
  readonly workingDir?: string | null;
  readonly totalTokens?: number;
  readonly label: string | null;
  readonly settings: Readonly<Record<string, string>>;
};

export type Setting = {
  readonly key: string;
  readonly value: string;
  readonly description: string;
  readonly category: string;
  readonly updated_by: string | null;
  readonly updated_at: number | null;
  readonly is_default: boolean;
};

export type StandupReport = {
  readonly date: string;
  readonly generatedAt: string;
  readonly summary: {
    readonly totalAgents: number;
    readonly totalCompleted: number;
    readonly totalInProgress: number;
    readonly totalAssigned: number;
    readonly totalReview: number;
    readonly totalBlocked: number;
    readonly totalActivity: number;
    readonly overdue: number;
  };
  readonly agentReports: readonly {
    readonly agent: {
      readonly name: string;
      readonly role: string;
      readonly status: string;
      readonly last_seen: number | null;
      readonly last_activity: string | null;
    };
    readonly completedToday: readonly {
      readonly id: number;
      readonly title: string;
      readonly status: string;
      readonly updated_at: number;
    }[];
    readonly inProgress: readonly {
      readonly id: number;
      readonly title: string;
      readonly status: string;
      readonly created_at: number;
      readonly due_date: number | null;
    }[];
    readonly assigned: readonly {
      readonly id: number;
      readonly title: string;
      readonly status: string;
      readonly created_at: number;
      readonly due_date: number | null;
      readonly priority: string;
    }[];
    readonly review: readonly {
      readonly id: number;
      readonly title: string;
      readonly status: string;
      readonly updated_at: number;
    }[];
    readonly blocked: readonly {
      readonly id: number;
      readonly title: string;
      readonly status: string;
      readonly priority: string;
      readonly created_at: number;
      readonly metadata: string;
    }[];
    readonly activity: { readonly actionCount: number; readonly commentsCount: number };
  }[];
  readonly teamAccomplishments: readonly {
    readonly id: number;
    readonly title: string;
    readonly status: string;
    readonly updated_at: number;
    readonly agent: string;
  }[];
  readonly teamBlockers: readonly {
    readonly id: number;
    readonly title: string;
    readonly status: string;
    readonly priority: string;
    readonly created_at: number;
    readonly metadata: string;
    readonly agent: string;
  }[];
  readonly overdueTasks: readonly {
    readonly id: number;
    readonly title: string;
    readonly description: string | null;
    readonly status: string;
    readonly priority: string;
    readonly project_id: number;
    readonly project_ticket_no: number;
    readonly assigned_to: string | null;
    readonly created_by: string;
    readonly due_date: number;
    readonly estimated_hours: number | null;
    readonly actual_hours: number | null;
    readonly outcome: string | null;
    readonly error_message: string | null;
    readonly resolution: string | null;
    readonly feedback_rating: number | null;
    readonly feedback_notes: string | null;
    readonly retry_count: number;
    readonly completed_at: number | null;
    readonly tags: string;
    readonly metadata: string;
    readonly dispatch_attempts: number;
    readonly created_at: number;
    readonly updated_at: number;
    readonly workspace_id: number;
    readonly github_issue_number: number | null;
    readonly github_repo: string | null;
    readonly github_synced_at: number | null;
    readonly github_branch: string | null;
    readonly github_pr_number: number | null;
    readonly github_pr_state: string | null;
    readonly agent_name: string | null;
  }[];
};

export type Task = {
  readonly id: number;
  readonly title: string;
  readonly description: string | null;
  readonly status: string;
  readonly priority: string;
  readonly project_id: number;
  readonly project_ticket_no: number;
  readonly assigned_to: string | null;
  readonly created_by: string;
  readonly due_date: number | null;
  readonly estimated_hours: number | null;
  readonly actual_hours: number | null;
  readonly outcome: string | null;
  readonly error_message: string | null;
  readonly resolution: string | null;
  readonly feedback_rating: number | null;
  readonly feedback_notes: string | null;
  readonly retry_count: number;
  readonly completed_at: number | null;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly dispatch_attempts: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly workspace_id: number;
  readonly github_issue_number: number | null;
  readonly github_repo: string | null;
  readonly github_synced_at: number | null;
  readonly github_branch: string | null;
  readonly github_pr_number: number | null;
  readonly github_pr_state: string | null;
  readonly project_name: string | null;
  readonly project_prefix: string | null;
  readonly ticket_ref?: string;
};

export type TaskStats = {
  readonly total: number;
  readonly assigned: number;
  readonly in_progress: number;
  readonly quality_review: number;
  readonly done: number;
  readonly completed: number;
};

export type Tenant = {
  readonly id: number;
  readonly slug: string;
  readonly display_name: string;
  readonly linux_user: string;
  readonly plan_tier: string;
  readonly status: 'pending' | 'provisioning' | 'decommissioning' | 'active' | 'suspended' | 'error';
  readonly workspace_root: string;
  readonly gateway_port: number | null;
  readonly dashboard_port: number | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly created_by: string;
  readonly owner_gateway: string | null;
  readonly workspace_id: number;
  readonly created_at: number;
  readonly updated_at: number;
};

export type TokenPrice = {
  readonly model: string;
  readonly input: number;
  readonly output: number;
  readonly cache_read: number;
  readonly cache_write: number;
  readonly source: 'built-in' | 'own';
  readonly updated_at: number | null;
  readonly updated_by: string | null;
};

export type TokenRecord = {
  readonly id: string;
  readonly model: string;
  readonly sessionId: string;
  readonly agentId: number | null;
  readonly agentName: string;
  readonly timestamp: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly totalTokens: number;
  readonly cost: number;
  readonly price: 'own' | 'built-in' | 'default' | 'subscription';
  readonly operation: string;
  readonly taskId: number | null;
  readonly workspaceId: number;
  readonly duration?: number;
};

export type TokenStats = {
  readonly totalTokens: number;
  readonly totalCost: number;
  readonly estimatedCost: number;
  readonly requestCount: number;
  readonly avgTokensPerRequest: number;
  readonly avgCostPerRequest: number;
};

export type User = {
  readonly id: number;
  readonly username: string;
  readonly display_name: string;
  readonly role: 'viewer' | 'operator' | 'admin';
  readonly provider: 'local' | 'google' | 'oidc' | 'proxy';
  readonly email: string | null;
  readonly avatar_url: string | null;
  readonly is_approved: 0 | 1;
  readonly workspace_id: number;
  readonly tenant_id: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly last_login_at: number | null;
};

export type Webhook = {
  readonly id: number;
  readonly name: string;
  readonly url: string;
  readonly secret: string | null;
  readonly events: readonly string[];
  readonly format: 'json' | 'cloudevents';
  readonly enabled: boolean;
  readonly last_fired_at?: number | null;
  readonly last_status?: number | null;
  readonly consecutive_failures?: number;
  readonly circuit_open?: boolean;
  readonly total_deliveries?: number;
  readonly successful_deliveries?: number;
  readonly failed_deliveries?: number;
  readonly created_by: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly workspace_id: number;
};

export type WebhookDelivery = {
  readonly id: number;
  readonly webhook_id: number;
  readonly event_type: string;
  readonly event: string;
  readonly message_id: string;
  readonly payload: string;
  readonly status_code: number | null;
  readonly response_body: string | null;
  readonly error: string | null;
  readonly duration_ms: number;
  readonly attempt: number;
  readonly is_retry: 0 | 1;
  readonly parent_delivery_id: number | null;
  readonly next_retry_at: number | null;
  readonly created_at: number;
  readonly workspace_id: number;
  readonly webhook_name: string;
  readonly webhook_url: string;
};

export type WebhookDeliveryResult = {
  readonly success: boolean;
  readonly status_code: number | null;
  readonly response_body: string | null;
  readonly error: string | null;
  readonly duration_ms: number;
  readonly response_time_ms: number;
  readonly delivery_id: number;
};

export type Workflow = {
  readonly id: number;
  readonly name: string;
  readonly description: string | null;
  readonly model: string;
  readonly task_prompt: string;
  readonly timeout_seconds: number;
  readonly agent_role: string | null;
  readonly tags: readonly string[];
  readonly created_by: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly last_used_at: number | null;
  readonly use_count: number;
  readonly workspace_id: number;
};

export type Workspace = {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly tenant_id: number;
  readonly brand: string | null;
  readonly isolation: 'shared' | 'strict';
  readonly created_at: number;
  readonly updated_at: number;
};
