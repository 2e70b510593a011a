/** Brings tasks, scheduled jobs, alert rules and projects up to date whose agent was renamed or deleted (`commands/agents/references.ts`). */
import { assignedTasks, memberships, notifiedBy } from '../../../queries/agents/references.ts';
import { DEFAULT_TENANT } from '../../../shared/events/metadata.ts';
import { newId } from '../../../shared/ids.ts';
import { type FollowParts, followJobs, followMembership, followRule, followTask } from '../../agents/references.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { counted, EVERY_MINUTE_MS, forAll, paged, type Schedule } from '../schedule.ts';

/** Candidates per page. */
const PAGE = 200;

export const agentReferencesSchedule = (parts: FollowParts): Schedule => ({
  id: 'agent_references',
  kind: 'agent-references',
  name: 'Update tasks, jobs, alert rules and projects of renamed and deleted agents',
  everyMs: EVERY_MINUTE_MS,
  async run() {
    const run = newId();
    let tasks = 0;
    await forAll(
      paged((after, limit) => assignedTasks(parts.reads, after, limit), PAGE),
      async (task) => {
        if (await followTask(parts, scheduledContext(run, task.tenant, task.workspace), task)) tasks++;
      },
    );
    let rules = 0;
    await forAll(
      paged((after, limit) => notifiedBy(parts.reads, after, limit), PAGE),
      async (rule) => {
        if (await followRule(parts, scheduledContext(run, rule.tenant, rule.workspace), rule)) rules++;
      },
    );
    let left = 0;
    await forAll(
      paged((after, limit) => memberships(parts.reads, after, limit), PAGE),
      async (one) => {
        if (await followMembership(parts, scheduledContext(run, one.tenant, one.workspace), one)) left++;
      },
    );
    const jobs = await followJobs(parts, (workspace) => scheduledContext(run, DEFAULT_TENANT, workspace));
    return `${counted(tasks, 'task was', 'tasks were')}, ${counted(jobs, 'job was', 'jobs were')} and ${counted(rules, 'alert rule was', 'alert rules were')} updated; ${counted(left, 'deleted agent', 'deleted agents')} left a project.`;
  },
});
