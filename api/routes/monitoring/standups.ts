/** Standup reports. */
import { recordStandup } from '../../../commands/monitoring/standups.ts';
import { listStandups, standupOf } from '../../../queries/monitoring/standups.ts';
import {
  standupAnswer,
  standupBody,
  standupsAnswer,
  standupsQuery,
} from '../../../shared/contract/monitoring/standups.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/standup',
  tag: 'Monitoring',
  summary: 'Earlier standup reports in numbers, the newest first',
  access: 'viewer',
  query: standupsQuery,
  responses: { 200: { description: 'A page of reports', schema: standupsAnswer } },
  cache: { models: ['standups'], scope: 'workspace' },
  handle: async ({ query, identity, services }) => ({
    body: await listStandups(services.reads, identity.workspace, query),
  }),
});

const generate = defineRoute({
  method: 'post',
  path: '/api/standup',
  tag: 'Monitoring',
  summary: 'Make the standup report of a day',
  description:
    'What agents did on the day, and what they have to do now. The numbers are kept, in the place of an earlier report of the same day. Each list has 1,000 tasks at most; the summary counts all.',
  access: 'operator',
  body: standupBody,
  responses: { 200: { description: 'The report', schema: standupAnswer } },
  async handle({ body, identity, services, command }) {
    const now = services.now();
    const date = body.date ?? new Date(now).toISOString().slice(0, 10);
    const report = await standupOf(
      services.reads,
      identity.workspace,
      { date, names: body.agents, isAdmin: identity.role === 'admin' },
      seconds(now),
    );
    const at = await recordStandup(services.commands, command, date, report.summary, now);
    return { body: { standup: { ...report, generatedAt: new Date(at).toISOString() } } };
  },
});

export const standupRoutes: readonly Route[] = [list, generate];
