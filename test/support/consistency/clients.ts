/**
 * Clients that write and read through the public interface, all at once, and record what they see (`check.ts`).
 *
 * Objects are agents and tasks. Each has a name of its own that is never used again, and two or three fields that every
 * change sets to one new value. Tasks of the queue are claimed by polls, and handed in. Counters are comments on a task and
 * reports of tokens.
 */
import { call, type Reply } from '../service.ts';
import { KEY } from '../service-process.ts';
import { type Cell, GONE, heldBy, type Operation, WAITING } from './check.ts';

/** An API process since it began, or since the database behind it lost rows. */
export interface Target {
  readonly url: string;
  readonly name: string;
}

export interface ClientsOptions {
  /** Those that serve; asked for at each request. */
  readonly targets: () => readonly Target[];
  readonly random: () => number;
  readonly clients: number;
}

export interface Clients {
  readonly history: readonly Operation[];
  /** Responses that no fault explains. */
  readonly unexpected: readonly string[];
  /** Responses by method and status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Stops, and reads everything once more through every process. */
  stop(): Promise<void>;
}

/** What has been created, as far as clients know. */
interface Known {
  readonly name: string;
  id: number | undefined;
  /** Requests that may create it and have no outcome. */
  pending: number;
  deleting: boolean;
  value: string;
}

/** How many of each there are, about. */
const AGENTS = 16;
const TASKS = 16;
const IN_QUEUE = 10;
const POLLERS = ['poll-a', 'poll-b', 'poll-c', 'poll-d'];
/** Deleted ones that are still asked for. */
const REMEMBERED = 6;

type Body = Readonly<Record<string, unknown>>;

const agentCell = ({ name, role, status }: Body): Cell => {
  // Agents are created with a status of a fixed set.
  const created = status === 'idle' && String(role).startsWith('c');
  return [`agent ${name}`, String(role), ...(created ? [] : [String(status)])];
};

const taskCell = ({ title, description, resolution, error_message, status, assigned_to }: Body): Cell => {
  const object = `task ${title}`;
  if (!String(title).startsWith('q')) return [object, String(description), String(resolution), String(error_message)];
  if (status === 'inbox') return [object, WAITING];
  return [object, status === 'in_progress' ? heldBy(String(assigned_to)) : String(resolution)];
};

export function startClients({ targets, random, clients }: ClientsOptions): Clients {
  const history: Operation[] = [];
  const unexpected: string[] = [];
  const statuses: Record<string, number> = {};
  const agents: Known[] = [];
  const tasks: Known[] = [];
  const queued: Known[] = [];
  /** Claimed tasks of the queue, by id. */
  const held = new Map<number, Known>();
  const gone: { readonly kind: 'agent' | 'task'; readonly known: Known }[] = [];
  let counted: Known | undefined;
  let values = 0;
  let names = 0;
  let position = 0;
  let running = true;

  const below = (count: number) => Math.floor(random() * count);
  const pick = <T>(items: readonly T[]): T | undefined => items[below(items.length)];
  /** Rather one of the newest, so that clients meet. */
  const pickNear = (items: readonly Known[]): Known | undefined =>
    random() < 0.6 ? items[items.length - 1 - below(Math.min(4, items.length))] : pick(items);
  const next = (first: string) => `${first}${++values}`;

  async function send(
    method: string,
    path: string,
    body: Body | undefined,
    how: Partial<Operation> & Pick<Operation, 'kind'>,
    read: (reply: Reply) => Partial<Operation>,
    { object, target = pick(targets()) }: { readonly object?: string; readonly target?: Target | undefined } = {},
  ): Promise<Reply | undefined> {
    if (!target) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return undefined;
    }
    const headers: Record<string, string> = { 'x-api-key': KEY };
    if (how.kind === 'eventual') headers['x-signalbox-consistency'] = 'eventual';
    if (how.kind === 'at') headers['x-signalbox-min-position'] = String(how.atLeast);
    const what = `${method} ${path}${body ? ` ${JSON.stringify(body)}` : ''} at ${target.name}`;
    const invoked = performance.now();
    const reply = await call(target, method, path, body, headers).catch(() => undefined);
    const completed = performance.now();
    const isWrite = how.kind === 'write';
    const count = `${isWrite ? method : how.kind} ${reply?.status ?? 'broken'}`;
    statuses[count] = (statuses[count] ?? 0) + 1;
    if (!reply || reply.status >= 500) {
      if (isWrite)
        history.push({ ...how, what: `${what} → ${reply?.status ?? 'broken'}`, invoked, completed: Infinity });
      if (reply && reply.status !== 503) unexpected.push(`${what}: ${reply.status} ${JSON.stringify(reply.body)}`);
      // Clients that ask again at once would only take CPU time from what they wait for.
      await new Promise((resolve) => setTimeout(resolve, 20));
      return undefined;
    }
    const header = reply.headers.get('x-signalbox-position') ?? reply.headers.get('x-signalbox-position-at-least');
    const at = header === null ? undefined : Number(header);
    const refused = reply.status >= 400;
    const seen = refused ? refusal(reply, how, object) : read(reply);
    const stayed = targets().some(({ name }) => name === target.name);
    const source = how.kind === 'eventual' && stayed ? `${target.name} ${path.split('?')[0]}` : undefined;
    history.push({
      ...how,
      ...seen,
      what: `${what} → ${reply.status}${refused ? ` ${reply.body?.code ?? ''}` : ''}`,
      invoked,
      completed,
      refused,
      position: at,
      source,
    });
    if (isWrite && at !== undefined) position = at;
    if (refused && reply.status !== 404 && reply.status !== 409)
      unexpected.push(`${what}: ${reply.status} ${JSON.stringify(reply.body)}`);
    return reply;
  }

  /** What a refusal says of the object. */
  function refusal(
    { status, body }: Reply,
    { once }: Partial<Operation>,
    object: string | undefined,
  ): Partial<Operation> {
    if (object === undefined) return {};
    if (status === 404) return { absent: object };
    return body.code === 'NAME_TAKEN' && once?.startsWith('creating') ? { exists: object } : {};
  }

  /** Most reads are current. */
  function reading(): Partial<Operation> & Pick<Operation, 'kind'> {
    const choice = random();
    if (choice < 0.1) return { kind: 'eventual' };
    return choice < 0.2 && position > 0 ? { kind: 'at', atLeast: position } : { kind: 'current' };
  }

  // --- Objects -------------------------------------------------------------------------------------------------------

  const KINDS = {
    agent: {
      all: agents,
      path: '/api/agents',
      list: '/api/agents?limit=200',
      created: (name: string, value: string) => ({ name, role: value, status: 'idle' }),
      changed: (value: string) => ({ role: value, status: value }),
      cell: agentCell,
    },
    task: {
      all: tasks,
      path: '/api/tasks',
      list: '/api/tasks?limit=200',
      created: (name: string, value: string) => ({
        ...{ title: name, status: 'backlog', description: value, resolution: value, error_message: value },
      }),
      changed: (value: string) => ({ description: value, resolution: value, error_message: value }),
      cell: taskCell,
    },
  } as const;
  type Kind = keyof typeof KINDS;
  const recordIn = (kind: Kind, { body }: Reply): Body => body[kind];

  async function create(kind: Kind, all: Known[] = KINDS[kind].all): Promise<Known> {
    const isQueued = all === queued;
    const known: Known = {
      name: `${isQueued ? 'q' : kind[0]}${++names}`,
      id: undefined,
      pending: 0,
      deleting: false,
      value: '',
    };
    if (kind === 'agent') all.push(known);
    await attemptToCreate(kind, known, isQueued);
    if (kind === 'task' && known.id !== undefined) all.push(known);
    return known;
  }

  async function attemptToCreate(kind: Kind, known: Known, isQueued = false): Promise<void> {
    const { path, created } = KINDS[kind];
    const value = isQueued ? WAITING : next('c');
    const object = `${kind} ${known.name}`;
    const body = isQueued ? { title: known.name } : created(known.name, value);
    known.pending++;
    const how = { kind: 'write', writes: [object, value], once: `creating ${object}` } as const;
    const shown = (answer: Reply) => ({ shows: [KINDS[kind].cell(recordIn(kind, answer))] });
    const reply = await send('POST', path, body, how, shown, { object });
    if (!reply) return;
    known.pending--;
    if (reply.status === 201) {
      known.id = recordIn(kind, reply).id as number;
      known.value = value;
    }
  }

  /** Agents may be named by their names as well. */
  const pathOf = (kind: Kind, { id, name }: Known): string =>
    `${KINDS[kind].path}/${kind === 'agent' && (id === undefined || random() < 0.3) ? name : id}`;

  async function change(kind: Kind, known: Known | undefined): Promise<void> {
    if (known?.id === undefined) return;
    const { changed, cell } = KINDS[kind];
    const value = next('v');
    const object = `${kind} ${known.name}`;
    const reply = await send(
      'PUT',
      pathOf(kind, known),
      changed(value),
      { kind: 'write', writes: [object, value] },
      (answer) => {
        // What is read back is what was written, so it says nothing further; half of it would.
        const [, ...fields] = cell(recordIn(kind, answer));
        return fields.every((field) => field === value) ? {} : { shows: [[object, ...fields]] };
      },
      { object },
    );
    if (reply?.status === 200) known.value = value;
    if (reply && random() < 0.5) await readOne(kind, known);
  }

  async function readOne(kind: Kind, known: Known | undefined, target?: Target): Promise<void> {
    if (!known) return;
    const { cell } = KINDS[kind];
    if (kind === 'task' && known.id === undefined) return;
    const object = `${kind} ${known.name}`;
    const how = target ? { kind: 'current' as const } : reading();
    await send(
      'GET',
      pathOf(kind, known),
      undefined,
      how,
      (answer) => ({
        shows: [cell(recordIn(kind, answer))],
      }),
      { object, target },
    );
  }

  async function list(kind: Kind, target?: Target): Promise<void> {
    const { list: path, cell } = KINDS[kind];
    const how = target ? { kind: 'current' as const } : reading();
    await send(
      'GET',
      path,
      undefined,
      how,
      ({ body }) => {
        const rows = body[`${kind}s`] as readonly Body[];
        if (rows.length < 200 && body.total !== rows.length)
          unexpected.push(`${path}: ${rows.length} of ${body.total} rows`);
        const counter = rows.find(({ title }) => kind === 'task' && title === counted?.name);
        return {
          shows: rows.map(cell),
          // A page that is full may leave some out.
          ...(rows.length < 200 && { lists: `${kind} ` }),
          ...(counter && { counts: [['comments', counter.comment_count as number]] }),
        };
      },
      { target },
    );
  }

  /** A filter by the value that the client knows. */
  async function find(known: Known | undefined): Promise<void> {
    if (!known?.value.startsWith('v')) return;
    const { value } = known;
    await send('GET', `/api/agents?role=${value}&limit=5`, undefined, { kind: 'current' }, ({ body }) =>
      body.total === 0 && body.agents.length === 0
        ? { lacks: [`agent ${known.name}`, value] }
        : { shows: body.agents.map(agentCell) },
    );
  }

  async function remove(kind: Kind, all: Known[]): Promise<void> {
    const known = pick(all.filter((one) => one.id !== undefined && one.pending === 0));
    if (!known) return;
    const object = `${kind} ${known.name}`;
    // Another client may delete it as well: only one of them does.
    if (known.deleting && random() < 0.5) return;
    known.deleting = true;
    const reply = await send(
      'DELETE',
      pathOf(kind, known),
      kind === 'agent' ? {} : undefined,
      { kind: 'write', writes: [object, GONE], once: `deleting ${object}` },
      () => ({}),
      { object },
    );
    if (!reply) return;
    if (all.includes(known)) all.splice(all.indexOf(known), 1);
    gone.push({ kind, known });
    if (gone.length > REMEMBERED) gone.shift();
  }

  // --- The queue -----------------------------------------------------------------------------------------------------

  async function poll(): Promise<void> {
    const agent = pick(POLLERS) as string;
    const path = `/api/tasks/queue?agent=${agent}`;
    const reply = await send('GET', path, undefined, { kind: 'write', agent }, ({ body }) => {
      const { task, reason } = body;
      if (!task) return {};
      const cell = taskCell(task);
      const [object] = cell;
      const own = heldBy(agent);
      if (reason !== 'assigned') return { task: object, shows: [cell[1] === own ? cell : [object, own]] };
      return { task: object, writes: [object, own], once: `claiming ${object}` };
    });
    const { task } = reply?.status === 200 ? reply.body : { task: null };
    if (!task) return;
    const known = queued.find(({ id }) => id === task.id) ?? {
      ...{ name: task.title, id: task.id, pending: 0, deleting: false, value: '' },
    };
    held.set(task.id, known);
  }

  async function handIn(): Promise<void> {
    const known = pick([...held.values()]);
    if (known?.id === undefined) return;
    held.delete(known.id);
    if (queued.includes(known)) queued.splice(queued.indexOf(known), 1);
    const object = `task ${known.name}`;
    const value = next('v');
    const body = { status: 'review', resolution: value };
    const reply = await send(
      'PUT',
      `/api/tasks/${known.id}`,
      body,
      { kind: 'write', writes: [object, value] },
      () => ({}),
      { object },
    );
    if (!reply) return;
    await readOne('task', known);
    // Deleted later, so that lists stay short.
    if (reply.status === 200 && !tasks.includes(known)) tasks.push(known);
  }

  // --- Counters ------------------------------------------------------------------------------------------------------

  async function comment(): Promise<void> {
    const path = `/api/tasks/${counted?.id}/comments`;
    await send('POST', path, { content: 'counted' }, { kind: 'write', adds: 'comments' }, () => ({}));
  }

  async function reportTokens(): Promise<void> {
    const body = { model: 'm', sessionId: 'counter:cli', inputTokens: 1, outputTokens: 1 };
    await send('POST', '/api/tokens', body, { kind: 'write', adds: 'token reports' }, () => ({}));
  }

  const countTokens = (target?: Target): Promise<unknown> =>
    send(
      'GET',
      '/api/tokens?limit=1',
      undefined,
      target ? { kind: 'current' } : reading(),
      ({ body }) => ({
        counts: [['token reports', body.total]],
      }),
      { target },
    );

  // -------------------------------------------------------------------------------------------------------------------

  const livingIn = (all: readonly Known[]) => all.filter(({ id }) => id !== undefined);
  const acts: readonly (readonly [weight: number, act: () => Promise<unknown>])[] = [
    [6, () => (livingIn(agents).length < AGENTS ? create('agent') : remove('agent', agents))],
    // A name that another client is creating right now.
    [
      2,
      async () => {
        const known = pick(agents.filter(({ id, pending }) => id === undefined && pending > 0));
        if (known) await attemptToCreate('agent', known);
      },
    ],
    [6, () => (tasks.length < TASKS ? create('task') : remove('task', tasks))],
    [18, () => change('agent', pickNear(agents))],
    [12, () => change('task', pickNear(tasks.filter(({ name }) => !name.startsWith('q'))))],
    [10, () => readOne('agent', pickNear(agents))],
    [8, () => readOne('task', pickNear(tasks))],
    [3, () => find(pickNear(agents))],
    [
      5,
      async () => {
        const one = pick(gone);
        if (one) await readOne(one.kind, one.known);
      },
    ],
    [
      3,
      async () => {
        const one = pick(gone);
        if (one) await change(one.kind, one.known);
      },
    ],
    [4, () => list('agent')],
    [4, () => list('task')],
    [8, () => (queued.length < IN_QUEUE ? create('task', queued) : poll())],
    [10, poll],
    [8, handIn],
    [2, comment],
    [2, reportTokens],
    [2, () => countTokens()],
  ];
  const total = acts.reduce((sum, [weight]) => sum + weight, 0);

  async function runClient(): Promise<void> {
    while (running) {
      let choice = random() * total;
      const act = acts.find(([weight]) => {
        choice -= weight;
        return choice < 0;
      });
      await act?.[1]();
    }
  }

  const all = (async () => {
    while (running && counted?.id === undefined) counted = await create('task', []);
    await Promise.all(Array.from({ length: clients }, runClient));
  })();
  // It rejects `stop` as well.
  all.catch(() => undefined);
  return {
    history,
    unexpected,
    statuses,
    async stop() {
      running = false;
      await all;
      for (const target of targets()) {
        await list('agent', target);
        await list('task', target);
        await countTokens(target);
      }
    },
  };
}
