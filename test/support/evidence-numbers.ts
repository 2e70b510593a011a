/** Which numbers responses with evidence have, and under which name the evidence of each is. */
import { z } from 'zod';
import { attributionResponse } from '../../shared/contract/agents/attribution.ts';
import { diagnosticsResponse } from '../../shared/contract/agents/diagnostics.ts';
import {
  alertRuleResponse,
  alertRulesResponse,
  backtestResponse,
  evaluationResponse,
} from '../../shared/contract/alerts/rules.ts';
import {
  agentCostsResponse,
  byAgentResponse,
  taskCostsResponse,
  tokenExportResponse,
  tokenListResponse,
  tokenStatsResponse,
  tokenTrendsResponse,
} from '../../shared/contract/tokens/usage.ts';

export interface EvidentResponse {
  readonly schema: z.ZodType;
  /**
   * Evidence by number. In paths, `[]` is a member of a list and `*` of a record. In names, `{0}` is the first key of a
   * record on the path, and `{type}` the field of that name of the members.
   */
  readonly numbers: Readonly<Record<string, string>>;
  /** Numbers that are not derived from events: ids, times, settings, what was asked for, fields of single records. */
  readonly facts: readonly string[];
}

/** The fields of objects that have the same name of evidence. */
const shared = (path: string, fields: readonly string[], name: string): Readonly<Record<string, string>> =>
  Object.fromEntries(fields.map((field) => [`${path}.${field}`, name]));

const under = (path: string, fields: readonly string[]): string[] => fields.map((field) => `${path}.${field}`);

/** Numbers whose evidence has their path as its name. */
const named = (path: string, fields: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(under(path, fields).map((one) => [one, one]));

const STATS = ['totalTokens', 'totalCost', 'estimatedCost', 'requestCount', 'avgTokensPerRequest', 'avgCostPerRequest'];
const DAY = ['cost', 'tokens'];
const RECORD = under('usage[]', [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'totalTokens',
  'cost',
  'timestamp',
  'agentId',
  'workspaceId',
  'duration',
  'taskId',
]);
const TIMEFRAME = under('timeframe', ['hours', 'since', 'until']);
const RULE_FACTS = ['id', 'cooldown_minutes', 'last_triggered_at', 'created_at', 'updated_at', 'workspace_id'];
const PERIOD = ['activities', 'errors', 'tasks_completed'];

export const EVIDENT_ANSWERS: readonly EvidentResponse[] = [
  {
    schema: diagnosticsResponse,
    numbers: {
      ...named('summary', ['tasks_completed', 'tasks_total', 'activity_count', 'error_count', 'error_rate_percent']),
      'tasks.by_status.*': 'tasks.by_status.{0}',
      'tasks.by_priority.*': 'tasks.by_priority.{0}',
      ...named('tasks', ['throughput_per_day']),
      'errors.by_type[].count': 'errors.by_type.{type}',
      ...named('errors', ['total']),
      'activity.by_type[].count': 'activity.by_type.{type}',
      'activity.timeline[].count': 'activity.timeline.{timestamp}',
      ...named('trends.current_period', PERIOD),
      ...named('trends.previous_period', PERIOD),
      ...named('trends.change', ['activities_pct', 'errors_pct', 'tasks_completed_pct']),
      ...shared('tokens.by_model[]', ['input_tokens', 'output_tokens', 'request_count'], 'tokens.by_model.{model}'),
      ...shared('tokens.total', ['input_tokens', 'output_tokens', 'requests'], 'tokens.total'),
    },
    facts: [
      ...TIMEFRAME,
      // Each span has the position of its event, and the seconds are those of the spans.
      ...under('status', ['seconds_by_status.*', 'since', 'spans[].position', 'spans[].since', 'spans[].until']),
      'agent.id',
      // The leases have some that the log does not have yet.
      'summary.heartbeats',
      ...under('tasks.recent_completed[]', ['id', 'updated_at', 'completed_at']),
      ...under('errors.recent[]', ['id', 'created_at']),
      'activity.timeline[].timestamp',
      ...under('trends.current_period', ['since', 'until']),
      ...under('trends.previous_period', ['since', 'until']),
    ],
  },
  {
    schema: attributionResponse,
    numbers: {
      ...named('identity.lifetime_stats', ['tasks_total', 'tasks_completed', 'tasks_active', 'comments_authored']),
      ...named('audit', ['total_activities', 'total_entries']),
      'audit.by_type.*': 'audit.by_type.{0}',
      'audit.by_action.*': 'audit.by_action.{0}',
      ...named('mutations.summary', ['task_mutations_count', 'comments_count', 'status_changes_count']),
      ...shared(
        'cost.by_model[]',
        ['request_count', 'input_tokens', 'output_tokens', 'cost', 'estimated_cost'],
        'cost.by_model.{model}',
      ),
      ...shared('cost.total', ['requests', 'input_tokens', 'output_tokens', 'cost', 'estimated_cost'], 'cost.total'),
      ...shared(
        'cost.daily_trend[]',
        ['requests', 'input_tokens', 'output_tokens', 'cost', 'estimated_cost'],
        'cost.daily_trend.{date}',
      ),
    },
    facts: [
      ...TIMEFRAME,
      'audit.heartbeats',
      ...under('identity', ['id', 'last_seen', 'created_at']),
      ...under('audit.activities[]', ['id', 'entity_id', 'created_at', 'position']),
      ...under('audit.audit_log_entries[]', ['id', 'created_at', 'position']),
      ...under('mutations.task_mutations[]', ['id', 'entity_id', 'created_at', 'position']),
      ...under('mutations.comments[]', ['id', 'task_id', 'created_at', 'position']),
      ...under('mutations.status_changes[]', ['id', 'created_at', 'position']),
      'cost.daily_trend[].day_bucket',
    ],
  },
  {
    schema: alertRulesResponse,
    numbers: { 'rules[].trigger_count': 'rules.{id}.trigger_count' },
    facts: under('rules[]', RULE_FACTS),
  },
  {
    schema: alertRuleResponse,
    numbers: named('rule', ['trigger_count']),
    facts: under('rule', RULE_FACTS),
  },
  {
    schema: evaluationResponse,
    numbers: { evaluated: 'evaluated', triggered: 'triggered' },
    facts: ['results[].rule_id'],
  },
  {
    schema: backtestResponse,
    numbers: { evaluated: 'evaluated', triggered: 'triggered', 'triggers[]': 'triggered' },
    facts: ['rule_id', 'hours', 'since', 'until'],
  },
  { schema: tokenListResponse, numbers: { total: 'total' }, facts: RECORD },
  {
    schema: tokenStatsResponse,
    numbers: {
      ...shared('summary', STATS, 'summary'),
      recordCount: 'summary',
      ...shared('models.*', STATS, 'models.{0}'),
      ...shared('sessions.*', STATS, 'sessions.{0}'),
      ...shared('agents.*', STATS, 'agents.{0}'),
    },
    facts: [],
  },
  {
    schema: tokenExportResponse,
    numbers: {
      ...shared('summary', STATS, 'summary'),
      ...shared('models.*', STATS, 'models.{0}'),
      ...shared('sessions.*', STATS, 'sessions.{0}'),
    },
    facts: RECORD,
  },
  {
    schema: agentCostsResponse,
    numbers: {
      recordCount: 'recordCount',
      ...shared('agents.*.stats', STATS, 'agents.{0}'),
      ...shared('agents.*.models.*', STATS, 'agents.{0}.models.{1}'),
      ...shared('agents.*.timeline[]', DAY, 'agents.{0}.timeline.{date}'),
    },
    facts: [],
  },
  {
    schema: taskCostsResponse,
    numbers: {
      recordCount: 'recordCount',
      attributedRecordCount: 'attributedRecordCount',
      ...shared('summary', STATS, 'summary'),
      ...shared('unattributed', STATS, 'unattributed'),
      ...shared('tasks[].stats', STATS, 'tasks.{taskId}'),
      ...shared('tasks[].models.*', STATS, 'tasks.{taskId}.models.{0}'),
      ...shared('tasks[].timeline[]', DAY, 'tasks.{taskId}.timeline.{date}'),
      ...shared('agents.*', ['taskCount', 'taskIds[]'], 'agents.{0}'),
      ...shared('agents.*.stats', STATS, 'agents.{0}'),
      ...shared('projects.*', ['taskCount', 'taskIds[]'], 'projects.{0}'),
      ...shared('projects.*.stats', STATS, 'projects.{0}'),
    },
    facts: ['tasks[].taskId', 'tasks[].project.id'],
  },
  {
    schema: tokenTrendsResponse,
    numbers: shared('trends[]', ['tokens', 'cost', 'requests'], 'trends.{timestamp}'),
    facts: [],
  },
  {
    schema: byAgentResponse,
    numbers: {
      ...shared('summary', ['total_cost', 'estimated_cost', 'total_tokens', 'agent_count'], 'summary'),
      ...shared(
        'agents[]',
        [
          'total_input_tokens',
          'total_output_tokens',
          'total_tokens',
          'total_cost',
          'estimated_cost',
          'session_count',
          'request_count',
        ],
        'agents.{agent}',
      ),
      ...shared(
        'agents[].models[]',
        ['input_tokens', 'output_tokens', 'request_count', 'cost', 'estimated_cost'],
        'agents.{agent}.models.{model}',
      ),
    },
    facts: ['agents[].agent_id', 'summary.days'],
  },
];

interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly anyOf?: readonly JsonSchema[];
}

const jsonSchemas = new WeakMap<z.ZodType, JsonSchema>();

export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const known = jsonSchemas.get(schema) ?? (z.toJSONSchema(schema, { unrepresentable: 'any' }) as JsonSchema);
  jsonSchemas.set(schema, known);
  return known;
}

/** Instead of a value: all numbers that a schema allows. */
const EVERY = Symbol('every number');

interface Place {
  readonly path: string;
  /** Keys of records on the way. */
  readonly keys: readonly string[];
  /** Fields of the objects on the way, the inner ones first. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Where the numbers of a value are, as its schema has them; those of the evidence itself are left out. */
function numbersIn(root: JsonSchema, schema: JsonSchema, value: unknown, place: Place): Place[] {
  const { $ref, type, properties = {}, items, additionalProperties, anyOf = [] } = schema;
  const { path, keys } = place;
  const inside = (next: JsonSchema, one: unknown, to: Partial<Place> = {}) =>
    numbersIn(root, next, one, { ...place, ...to });
  if ($ref !== undefined) return inside(root.$defs?.[$ref.replace('#/$defs/', '')] as JsonSchema, value);
  const isNumber = type === 'integer' || type === 'number';
  const found = isNumber && (value === EVERY || typeof value === 'number') ? [place] : [];
  found.push(...anyOf.flatMap((one) => inside(one, value)));
  if (items) {
    const members = value === EVERY ? [EVERY] : Array.isArray(value) ? value : [];
    found.push(...members.flatMap((one) => inside(items, one, { path: `${path}[]` })));
  }
  const object = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  const fields = { ...place.fields, ...object };
  if (typeof additionalProperties === 'object')
    for (const [key, one] of value === EVERY ? [['*', EVERY] as const] : Object.entries(object))
      found.push(...inside(additionalProperties, one, { path: `${path}.*`, keys: [...keys, key] }));
  for (const [name, one] of Object.entries(properties)) {
    if (path === '' && name === 'evidence') continue;
    const own = value === EVERY ? EVERY : object[name];
    found.push(...inside(one, own, { path: path === '' ? name : `${path}.${name}`, fields }));
  }
  return found;
}

/** Paths of all numbers that an answer may have. */
export function numberPaths(schema: z.ZodType): ReadonlySet<string> {
  const root = jsonSchemaOf(schema);
  return new Set(numbersIn(root, root, EVERY, { path: '', keys: [], fields: {} }).map(({ path }) => path));
}

/** The answer that a body is: its fields are all known there, and the required ones are all in it. */
function answerOf(body: Readonly<Record<string, unknown>>): EvidentResponse {
  const fits = EVIDENT_ANSWERS.filter(({ schema }) => {
    const { properties } = jsonSchemaOf(schema);
    return Object.keys(body).every((name) => name in (properties ?? {}));
  });
  const whole = fits.filter(({ schema }) => jsonSchemaOf(schema).required?.every((name) => name in body));
  const found = whole[0] ?? fits[0];
  if (!found) throw new Error(`no answer with evidence has the fields ${Object.keys(body).join(', ')}`);
  return found;
}

/** Names of the evidence of all numbers in a response. */
export function evidenceNames(body: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const { schema, numbers } = answerOf(body);
  const root = jsonSchemaOf(schema);
  const names = numbersIn(root, root, body, { path: '', keys: [], fields: {} }).flatMap(({ path, keys, fields }) => {
    const value = (key: string) => String(/^\d$/.test(key) ? keys[Number(key)] : fields[key]);
    const name = numbers[path];
    // The rest are facts: a test holds the table to the schemas.
    return name === undefined ? [] : [name.replace(/\{(\w+)\}/g, (_, key: string) => value(key))];
  });
  return new Set(names);
}
