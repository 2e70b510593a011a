/**
 * The words of the source, and where they may stand. Groups are the endpoint groups of the interface, concerns are the
 * resources of a group or what else it deals with; both have one name on every floor. `map.test.ts` holds the source to
 * this, `npm run map` prints it.
 */

/** By group, in the order of the interface: its concerns, each with what it is about. */
export const GROUPS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  auth: {
    setup: 'the first admin',
    'sign-in': 'by password or Google, and sign-out',
    google: 'ID tokens of Google',
    sessions: 'what a sign-in leaves with the browser',
    users: 'accounts',
    people: 'their erasure',
    changes: 'what admins and operators change about users',
    'proxy-users': 'users whom a trusted proxy names',
    'last-admin': 'a tenant keeps one admin',
    profile: 'what users change about themselves',
    'access-requests': 'people who ask to be let in',
    'global-key': 'the API key of the deployment',
    incidents: 'refused calls and other signs of misuse',
  },
  agents: {
    agents: 'the record: list and create',
    changes: 'changes of the record, and its deletion',
    config: 'how much a config may hold',
    registration: 'agents that register themselves',
    names: 'unique names and session keys',
    moves: 'from a deleted workspace into another',
    keys: 'API keys of agents',
    heartbeat: 'signs of life, and what is waiting for the agent',
    liveness: 'agents that have fallen silent',
    messages: 'from agent to agent',
    memory: 'working memory',
    souls: 'persona texts',
    templates: 'configurations to start from',
    diagnostics: 'how an agent fares: tasks, failures, activity',
    trends: 'what a period says when compared with the one before',
    sync: 'import from the gateway configuration',
    adapters: 'frameworks that agents run in',
    attribution: 'what one did, what it cost',
    evidence: 'the events behind numbers',
    scope: 'reports about one: for whom, over which hours',
  },
  tasks: {
    tasks: 'the record: list, create, one, delete',
    changes: 'changes of one task, and of the status of many',
    comments: 'comments, as threads, and mentions in them',
    subscriptions: 'who follows a task',
    visibility: 'which tasks a caller sees',
    assignments: 'how many an agent has, which wait for it',
    history: 'who did what to a task, when and why',
    branches: 'branches and pull requests of tasks',
    dispatch: 'tasks that agents are given by the runner',
    recurrence: 'tasks that come again, on a schedule',
    routing: 'the agent that fits a task of nobody',
    queue: 'tasks that agents claim, and how they come back',
    broadcasts: 'messages to those who follow a task',
    outcomes: 'how tasks came out',
    regression: 'tasks before and after a moment',
  },
  chat: {},
  connections: {},
  sessions: {},
  quality: {
    reviews: 'verdicts about tasks, and the way to done',
    verdicts: 'automatic reviews, by the runner',
  },
  tokens: {
    reports: 'what agents have used, one by one and in batches',
    prices: 'what a million tokens of a model costs',
    usage: 'sums by agent, model, session and time',
    stats: 'the same sums of everything in a timeframe',
    'task-costs': 'what tasks and projects cost',
    export: 'reports as a file',
  },
  workflows: {},
  pipelines: {
    pipelines: 'templates in a row',
    runs: 'one pass through a pipeline, step by step',
  },
  projects: {
    projects: 'the record: list, one, what it decides',
    changes: 'created and changed',
    names: 'unique slugs and ticket prefixes',
    assignments: 'agents of a project',
    tasks: 'tasks of a project',
    deletion: 'archived or gone, and where its tasks go',
    moves: 'from a deleted workspace into another',
    tickets: 'numbers of tasks within a project',
  },
  mentions: {},
  monitoring: {
    activities: 'what happened',
    audit: 'who did or tried what',
    notifications: 'what somebody is told',
    logs: 'lines of the log',
    status: 'the service in numbers',
    events: 'the live stream',
    frames: 'what an event sends down the stream',
    subjects: 'what activities are about',
    health: 'whether the service can serve',
    search: 'texts found in records of every kind',
    workload: 'how much there is to do',
    standups: 'reports of a day',
  },
  history: {
    events: 'the log, as it is stored',
    causes: 'why it happened, and what followed',
    proofs: 'that nothing was altered',
    diff: 'what changed between two positions',
  },
  webhooks: {
    webhooks: 'the record: who is told of what',
    messages: 'what an event says to receivers',
    deliveries: 'attempts, by themselves and by hand',
    news: 'the log, read once for all receivers',
    signatures: 'how receivers know who it was',
  },
  alerts: {
    rules: 'the record: what is watched, and what is done then',
    conditions: 'what a rule looks at, and how it compares',
    backtests: 'how often a rule would have triggered',
    evaluations: 'whether a rule triggers now',
    actions: 'what is done when a rule has triggered',
  },
  admin: {
    'gateway-config': 'the gateway configuration: read, written, put back',
    'gateway-document': 'its form, and changes of it',
    cleanup: 'old records taken off the lists',
    scheduler: 'what the service does by the clock',
    settings: 'what admins change while the service runs',
    gateways: 'servers that agents are reached through',
    'gateway-sessions': 'sessions that live at the primary gateway',
    'exec-approvals': 'commands that agents may run',
    export: 'data taken out',
    cron: 'scheduled jobs that admins make',
    backup: 'the whole log in a file',
  },
  workspaces: {
    workspaces: 'the record: list, create, one, change',
    isolation: 'what callers of a strict one do not get',
    removal: 'deleted: what is moved, what is switched off',
  },
  super: {
    tenants: 'the record, and all that its stream holds',
    changes: 'how tenants are made',
    'provision-jobs': 'asked for by one, approved by another, run',
  },
  releases: {},
  github: {
    issues: 'listed, imported, commented on, closed',
    links: 'which task stands for which issue',
    syncs: 'projects and their repositories in step',
  },
  docs: {},
};

/** Concerns that look like one word and are two in the interface. */
export const DISTINCT: readonly string[] = ['gateways', 'gateway-config', 'gateway-document', 'gateway-sessions'];

export interface Floor {
  /** Heading of its column; tests are shown in the column of what they test. */
  readonly column: string;
  /** Files that belong to no group, because every group uses them. */
  readonly shared: readonly string[];
  /** For floors of tests: the floor whose concerns they test. */
  readonly mirrors?: string;
  /** Its tests are about a concern on all floors. */
  readonly wholeColumn?: true;
}

export const FLOORS: Readonly<Record<string, Floor>> = {
  'shared/contract': { column: 'contract', shared: ['common', 'evidence', 'storable'] },
  'shared/events': {
    column: 'events',
    shared: ['catalogue', 'claims', 'define', 'metadata', 'seal', 'upcasters'],
  },
  commands: {
    column: 'commands',
    shared: ['claims', 'decider', 'handler', 'intents', 'limits', 'names', 'naming', 'reserve', 'states'],
  },
  'commands/policies': { column: 'policies', shared: ['index', 'policy'] },
  projections: { column: 'projections', shared: ['apply', 'index', 'projection'] },
  queries: { column: 'queries', shared: ['evidence', 'kept', 'names', 'reads', 'records'] },
  'api/routes': { column: 'routes', shared: ['index', 'nested'] },
  'test/commands': {
    column: 'commands',
    shared: ['claims', 'decider', 'handler', 'limits', 'names', 'policies', 'screening'],
    mirrors: 'commands',
  },
  'test/commands/policies': { column: 'policies', shared: [], mirrors: 'commands/policies' },
  'test/projections': { column: 'projections', shared: ['projection'], mirrors: 'projections' },
  'test/queries': { column: 'queries', shared: ['records'], mirrors: 'queries' },
  'test/contract': {
    column: 'contract',
    shared: [
      'agent-keys',
      'caches',
      'clients',
      'integers',
      'limits',
      'past',
      'people',
      'requests',
      'routes',
      'secrets',
      'tenancy',
    ],
    mirrors: 'api/routes',
    wholeColumn: true,
  },
};

/** Files directly in a room: what all of it uses, by name. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  shared: [
    'addresses',
    'bounded',
    'canonical-json',
    'confusables',
    'cron',
    'errors',
    'event-store',
    'folding',
    'identity',
    'messages',
    'names',
    'parsing',
    'prepared',
    'secret-names',
    'secret-texts',
    'secrets',
    'storable',
    'time',
    'time-buckets',
    'token-prices',
    'waiting',
  ],
  api: ['openapi', 'openapi-schemas', 'services'],
  infra: [
    'bin',
    'cli',
    'config',
    'core',
    'host',
    'logging',
    'main',
    'prepare',
    'processes',
    'readiness',
    'runner',
    'version',
  ],
};

/** Folders of mechanisms: nothing in them belongs to one group. */
export const MECHANISMS: Readonly<Record<string, string>> = {
  'shared/ports': 'what the rooms ask of the stores',
  'commands/screening': 'texts that attack a reader, and secrets in texts',
  'api/http': 'Express, validation, limits, cached answers, idempotency',
  'api/auth': 'who calls, and refused calls',
  'api/stream': 'the live stream',
  'infra/cli': 'the commands of the command line',
  'infra/credentials': 'passwords, keys, keys per person',
  'infra/database': 'one pool for PostgreSQL and PGlite, and what else is kept there',
  'infra/embedded': 'PGlite in a thread of its own, durable, one process per directory',
  'infra/event-log': 'what both event logs have in common',
  'infra/eventstore': 'the event log on EventStoreDB',
  'infra/postgres': 'the event log on PostgreSQL',
  'infra/proof': 'the tree over the log, its checkpoints, proofs of both',
  'infra/redis': 'rate limits shared by several processes',
  'infra/tools': 'what the command line does with whole logs',
  'infra/following': 'one reader of the log per process, leadership, checkpoints',
  'infra/read-models': 'tables, batches, positions, freshness',
  'infra/read-models/rebuild': 'read models built anew from the log',
  'infra/outgoing': 'requests to URLs of users, and to the feed of releases',
  'infra/jobs': 'background jobs, policies, schedules',
  'test/api': 'tests of what routes share',
  'test/bench': 'the benchmark',
  'test/docs': 'the documents, tried out',
  'test/faults': 'processes and stores that die',
  'test/infra': 'tests of the outside world',
  'test/infra/conformance': 'what every event log must do',
  'test/map': 'this map',
  'test/shared': 'tests of what both sides speak',
  'test/support': 'what tests share',
  'test/support/worlds': 'what tests of one group share',
  'test/support/eventstore-stand-in': 'the protocol of EventStoreDB in memory',
  'test/support/consistency': 'clients whose history is recorded and checked',
};

/** A small copy of the house, which documents quote: it has the same floors, and one group. */
export const EXAMPLE = { folder: 'test/docs/example-resource', group: 'notes' };
