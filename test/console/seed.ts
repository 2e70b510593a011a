/**
 * Two weeks in the life of a deployment, written through the API while the clock of this process is set back. One thing
 * happens in it that a reader has to find: yesterday, the agent ann began to use a dearer model for one task.
 */
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export const PASSWORD = 'correct horse battery';

const AGENTS = [
  ['ann', 'coder'],
  ['bert', 'coder'],
  ['cleo', 'reviewer'],
  ['dora', 'tester'],
  ['emil', 'researcher'],
  ['fritz', 'devops'],
  ['gwen', 'coder'],
  ['hugo', 'assistant'],
] as const;
const PROJECTS = [
  ['Ledger', 'LED'],
  ['Timetable', 'TIM'],
  ['Station screens', 'SCR'],
] as const;
const TITLES = [
  'Port the ledger to the new currency format',
  'Explain the difference between two exports',
  'Measure how long a restore takes',
  'Write the guide for new operators',
  'Check the times of the night train',
  'Remove the old login page',
  'Answer the questions of the auditors',
  'Find out why the screens flicker',
  'Shorten the names of platforms',
  'Test the import with a million rows',
  'Draw the map of the north line',
  'Update the certificates',
] as const;
const MODELS = ['anthropic/claude-sonnet-4-5', 'anthropic/claude-haiku-4-5'] as const;
const STATUSES = ['inbox', 'assigned', 'in_progress', 'review', 'quality_review', 'done'] as const;

type Send = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<unknown>;

/** The same numbers at each run, from 0 up to 1. */
function numbers(): () => number {
  let state = 42;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

export function sender(url: string, key: string): Send {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
}

/** A clock of this process that is set back; it never stands still. */
export interface Clock {
  /** When the seeded time ends, Unix milliseconds. */
  readonly end: number;
  set(ms: number): void;
  /** From now on it runs from `end` like any clock. */
  run(): void;
  /** How far it is behind the real time once it runs, milliseconds. */
  behindMs(): number;
  restore(): void;
}

/**
 * Set back to midnight in UTC some days before `end`. Call it before the service starts: a log does not go back in time.
 *
 * @param end Unix milliseconds; default: now
 */
export function turnBack({ end = Date.now(), days = 14 } = {}): Clock {
  const realNow = Date.now;
  let shown = Math.floor(end / DAY) * DAY - days * DAY;
  let behind: number | undefined;
  // A service that took the function while the clock was set back keeps it.
  Date.now = () => (behind === undefined ? Math.min(shown++, realNow()) : realNow() - behind);
  return {
    end,
    set(ms) {
      shown = Math.max(shown, ms);
    },
    run() {
      behind ??= realNow() - Math.max(shown, end);
    },
    behindMs: () => behind ?? realNow() - shown,
    restore() {
      behind = 0;
      Date.now = realNow;
    },
  };
}

/** The last noon in UTC. What ends there has the same days, whatever the time of the run. */
export const lastNoon = (): number => Math.floor((Date.now() - DAY / 2) / DAY) * DAY + DAY / 2;

/** Users for each role, agents, projects, and what they do from `days` before the end of the clock until then. */
export async function seed(
  url: string,
  key: string,
  clock: Clock,
  { days = 14, receiver = 'https://pager.invalid/hook' } = {},
): Promise<void> {
  const send = sender(url, key);
  const next = numbers();
  const pick = <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)] as T;
  const { end } = clock;
  // Midnight in UTC, because days of costs are those of UTC.
  const today = Math.floor(end / DAY) * DAY;
  try {
    const me = { 'x-agent-name': '' };
    for (const [username, role, display_name] of [
      ['mara', 'operator', 'Mara Lind'],
      ['viktor', 'viewer', 'Viktor Ahl'],
    ]) {
      await send('POST', '/api/auth/users', { username, role, display_name, password: PASSWORD });
    }
    for (const [name, role] of AGENTS) await send('POST', '/api/agents', { name, role, status: 'idle' });
    const projects: number[] = [];
    for (const [name, ticket_prefix] of PROJECTS) {
      const { project } = (await send('POST', '/api/projects', { name, ticket_prefix })) as { project: { id: number } };
      projects.push(project.id);
    }
    await send('POST', '/api/alerts', {
      name: 'An agent is in error',
      description: 'Look at its diagnostics first.',
      ...{ entity_type: 'agent', condition_field: 'status', condition_operator: 'equals', condition_value: 'error' },
    });
    await send('POST', '/api/alerts', {
      name: 'Many tasks wait for review',
      ...{ entity_type: 'task', condition_field: 'status', condition_operator: 'count_above', condition_value: '400' },
      cooldown_minutes: 240,
    });
    await send('POST', '/api/webhooks', {
      ...{ name: 'Pager', url: receiver, events: ['task.status_changed', 'alert.triggered'], generate_secret: true },
    });
    const open: { id: number; step: number; agent: string }[] = [];
    let reports = 0;
    let ported: number | undefined;
    for (let day = 0; day <= days; day++) {
      const start = today - (days - day) * DAY;
      const isYesterday = day === days - 1;
      for (let hour = 0; hour < 24; hour += 2) {
        const at = start + hour * HOUR + Math.floor(next() * HOUR);
        if (at >= end) break;
        clock.set(at);
        const isWork = hour >= 6 && hour <= 20;
        for (let n = isWork ? 2 : 0; n > 0; n--) {
          const agent = pick(AGENTS)[0];
          const { task } = (await send('POST', '/api/tasks', {
            title: pick(TITLES),
            priority: pick(['low', 'medium', 'medium', 'high', 'critical']),
            project_id: pick(projects),
            ...(next() > 0.2 && { assigned_to: agent }),
            tags: [pick(['north', 'south', 'night'])],
          })) as { task: { id: number } };
          open.push({ id: task.id, step: 1, agent });
        }
        if (isYesterday && ported === undefined && isWork) {
          const { task } = (await send('POST', '/api/tasks', {
            ...{
              title: 'Rewrite the settlement engine',
              priority: 'critical',
              project_id: projects[0],
              assigned_to: 'ann',
            },
          })) as { task: { id: number } };
          ported = task.id;
        }
        for (let n = isWork ? 5 : 1; n > 0 && open.length > 0; n--) {
          const one = pick(open);
          if (one.step >= STATUSES.length - 2) {
            await send('POST', '/api/quality-review', {
              ...{
                taskId: one.id,
                status: next() > 0.2 ? 'approved' : 'rejected',
                notes: 'Read and compared with the ticket.',
              },
            });
            open.splice(open.indexOf(one), 1);
          } else {
            one.step++;
            await send('PUT', `/api/tasks/${one.id}`, { status: STATUSES[one.step] }, { 'x-agent-name': '' });
          }
          if (next() > 0.6) {
            await send('POST', `/api/tasks/${one.id}/comments`, {
              author: one.agent,
              content: pick(['Done except for the edge cases.', 'The numbers agree now.', '@mara please have a look.']),
            });
          }
        }
        const list = [];
        for (const [agent] of AGENTS) {
          if (next() > (isWork ? 0.9 : 0.4)) continue;
          const task = open.find((one) => one.agent === agent)?.id;
          list.push({
            ...{ id: `r-${reports++}`, model: pick(MODELS), sessionId: `${agent}:cli-${day % 5}` },
            ...{ inputTokens: Math.floor(next() * 90_000), outputTokens: Math.floor(next() * 9_000) },
            ...{ operation: 'chat', ...(task !== undefined && { taskId: task }) },
          });
        }
        if (isYesterday && isWork) {
          for (let n = 0; n < 4; n++)
            list.push({
              ...{ id: `r-${reports++}`, model: 'anthropic/claude-opus-4-5', sessionId: 'ann:settlement' },
              ...{
                inputTokens: 150_000 + Math.floor(next() * 90_000),
                outputTokens: 12_000,
                operation: 'chat',
                taskId: ported,
              },
            });
        }
        if (list.length > 0) await send('POST', '/api/tokens/batch', { reports: list });
        const agent = pick(AGENTS)[0];
        await send('PUT', '/api/agents', {
          name: agent,
          status: next() > 0.93 ? 'error' : pick(['busy', 'idle', 'busy']),
          last_activity: pick(['Reads the ticket', 'Runs the tests', 'Writes a summary']),
        });
        if (next() > 0.7) {
          await send('POST', '/api/agents/message', {
            ...{
              from: pick(AGENTS)[0],
              to: agent,
              content: pick(['Can you take the next one?', 'The export is ready.']),
            },
          });
        }
        if (next() > 0.8) {
          await send(
            'POST',
            '/api/chat/messages',
            { to: agent, content: pick(['How far are you?', 'Please stop after this task.']) },
            me,
          );
        }
      }
    }
    clock.run();
    for (const [agent] of AGENTS.slice(0, 6)) await send('POST', `/api/agents/${agent}/heartbeat`, {});
    await send('PUT', '/api/agents', {
      name: 'fritz',
      status: 'error',
      last_activity: 'The certificate has expired',
    });
    await send('POST', '/api/alerts', { action: 'evaluate' });
  } finally {
    clock.run();
  }
}
