/** Standup reports. */
import { recordStandup } from '../../../commands/monitoring/standups.ts';
import { listStandups, standupOf } from '../../../queries/monitoring/standups.ts';
import { withDisplayNames } from '../../../queries/names.ts';
import * as contract from '../../../shared/contract/monitoring/standups.ts';
import { allTasks, type TaskView, taskViewOf } from '../../../shared/identity.ts';
import { seconds } from '../../../shared/time.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/standup',
  summary: 'Numbers of earlier standup reports, newest first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.standupsQuery,
  responses: { 200: { description: 'A page of reports', schema: contract.standupsResponse } },
  cache: { models: ['standups'] },
  respond: ({ query, identity, services }) => listStandups(services.reads, identity.workspace, query),
});

const generate = defineRoute({
  method: 'post',
  path: '/api/standup',
  summary: 'Create the standup report of a day',
  description:
    'What agents did on the day, and what they have to do now. The numbers are kept, in the place of an earlier report of the same day. Each list has 1,000 tasks at most; the summary counts all. A caller that speaks for an agent and is no admin gets a report of the tasks that it sees; the numbers that are kept are those of all tasks.',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.standupBody,
  responses: { 200: { description: 'The report', schema: contract.standupResponse } },
  async respond({ body, identity, services, command }) {
    const now = services.now();
    const date = body.date ?? new Date(now).toISOString().slice(0, 10);
    const about = { date, names: body.agents, isAdmin: identity.role === 'admin' };
    const reportFor = (view: TaskView) => standupOf(services.reads, view, about, seconds(now));
    const view = taskViewOf(identity);
    const report = await reportFor(view);
    // The stored numbers cover the whole workspace, for every caller.
    const whole = view.agent === null ? report : await reportFor(allTasks(identity.workspace));
    const at = await recordStandup(services.commands, command, date, whole.summary, now);
    const overdueTasks = await withDisplayNames(services.displayNames, identity.workspace, report.overdueTasks, [
      'created_by',
    ]);
    return { standup: { ...report, overdueTasks, generatedAt: new Date(at).toISOString() } };
  },
});

export const standupRoutes: readonly Route[] = [list, generate];
