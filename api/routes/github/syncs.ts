/** Projects that are synced with their repositories. */
import { answerWith } from '../../../commands/github/issues.ts';
import { syncProjects } from '../../../commands/schedules/github/syncs.ts';
import { listProjectSyncs } from '../../../queries/github/syncs.ts';
import {
  githubProjectsResponse,
  githubTriggerBody,
  githubTriggerResponse,
} from '../../../shared/contract/github/syncs.ts';
import { invalid } from '../../../shared/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { GITHUB_FAILURES, githubWork, outcomeOf, syncNow } from './issues.ts';

/** Name of the schedule (`commands/schedules/github/syncs.ts`). */
const SCHEDULE = 'github_sync';

const list = defineRoute({
  method: 'get',
  path: '/api/github/sync',
  summary: 'Projects synchronised with repositories, and the time of the next run',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  responses: { 200: { description: 'By name of the project', schema: githubProjectsResponse } },
  async respond({ identity, services }) {
    const { reads, scheduler } = services;
    if (reads.past !== undefined) return { syncs: [...(await listProjectSyncs(reads, identity.workspace))] };
    const [syncs, tasks] = await Promise.all([listProjectSyncs(reads, identity.workspace), scheduler.list()]);
    const task = tasks.find(({ id }) => id === SCHEDULE);
    const lastRun = task?.lastRun ?? null;
    const poller = {
      running: task?.enabled ?? false,
      interval: services.settings.githubSyncIntervalMs,
      ...(lastRun !== null && { lastRun }),
    };
    return { syncs, poller };
  },
});

const trigger = defineRoute({
  method: 'post',
  path: '/api/github/sync',
  summary: 'Sync a project now, or all projects of the workspace',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'screened' },
  scope: 'deployment',
  body: githubTriggerBody,
  refuses: [404],
  responses: { 200: { description: 'What was carried over', schema: githubTriggerResponse }, ...GITHUB_FAILURES },
  async respond(call) {
    const { body, identity, services, command } = call;
    if (body.action === 'trigger') {
      if (body.project_id === undefined) throw invalid('project_id: is missing; trigger needs it');
      return syncNow(call, body.project_id);
    }
    if (!services.github.configured) await services.github.user().catch(answerWith);
    const options = { workspace: identity.workspace, context: command };
    const { projects, pulled, pushed, failures } = await syncProjects(githubWork(call), options);
    return { ...outcomeOf(failures, pulled + pushed), projects_synced: projects, pulled, pushed };
  },
});

export const githubSyncRoutes: readonly Route[] = [list, trigger];
