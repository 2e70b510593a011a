/** The deciders whose decisions can be replayed, and the commands that their events show. */
import { SETTINGS_STREAM, settingReset, settingsUpdated } from '../shared/events/admin/settings.ts';
import {
  agentDeleted,
  agentDetailsChanged,
  agentHidden,
  agentShown,
  agentStatusChanged,
} from '../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../shared/events/agents/heartbeat.ts';
import { agentSoulChanged } from '../shared/events/agents/souls.ts';
import { type EventOf, firstOf } from '../shared/events/define.ts';
import { pipelineDeleted, pipelineUpdated, pipelineUsed } from '../shared/events/pipelines/pipelines.ts';
import { projectArchived, projectRestored, projectUpdated } from '../shared/events/projects/projects.ts';
import { taskStatusChanged } from '../shared/events/tasks/changes.ts';
import { taskClaimed } from '../shared/events/tasks/queue.ts';
import { taskDeleted } from '../shared/events/tasks/tasks.ts';
import { tokensReported } from '../shared/events/tokens/reports.ts';
import { workflowDeleted, workflowUpdated, workflowUsed } from '../shared/events/workflows.ts';
import { seconds } from '../shared/time.ts';
import { decideReset, decideSettings, settingsDecider } from './admin/settings.ts';
import { agentDecider, decideDelete, decideUpdate, decideVisibility } from './agents/agents.ts';
import { decideHeartbeat, decideReport, decideWake } from './agents/heartbeat.ts';
import { decideSoul } from './agents/souls.ts';
import * as pipelines from './pipelines/pipelines.ts';
import * as projects from './projects/projects.ts';
import { type Append, type Replayable, replayable } from './replayable.ts';
import { decideStatus } from './tasks/changes.ts';
import { decideClaim } from './tasks/queue.ts';
import * as tasks from './tasks/tasks.ts';
import * as workflows from './workflows.ts';

type Details = EventOf<typeof agentDetailsChanged>;

/** A change of an agent's record; its events show the fields that were sent, and who sent them. */
function agentUpdateOf(append: Append) {
  const [event] = append;
  const status = firstOf(append, agentStatusChanged)?.data;
  const details = firstOf(append, agentDetailsChanged)?.data as Details['data'] | undefined;
  const lastActivity = details?.changes.last_activity ?? status?.last_activity ?? undefined;
  const to = details?.status ?? status?.to;
  const config = details?.config ?? status?.config;
  const update = {
    ...details?.changes,
    ...(lastActivity !== undefined && { last_activity: lastActivity }),
    ...(to !== undefined && { status: to }),
  };
  const via = details?.via ?? (status?.seen ? ('name' as const) : ('id' as const));
  const actor = event?.meta.actor;
  const byItself = actor?.type === 'agent' && actor.id === (details ?? status)?.agent_id;
  const writeToGateway = details?.write_to_gateway ?? false;
  return [update, { via, byItself, write_to_gateway: writeToGateway, ...(config && { config }) }] as const;
}

function usageOf(append: Append) {
  const [report] = firstOf(append, tokensReported)?.data.reports ?? [];
  return { tokenUsage: report ? { ...report, task_id: report.task_id ?? null } : null };
}

function heartbeatOf(append: Append) {
  const beat = firstOf(append, agentHeartbeatReceived)?.data;
  return beat && { ...beat, ...usageOf(append) };
}

export const replayables: readonly Replayable[] = [
  replayable({
    name: 'agent',
    decider: agentDecider,
    prefix: 'agent-',
    again: (on) => [
      on([agentHidden, agentShown], (state, { event }) => decideVisibility(state, event.type === agentHidden.type)),
      on(agentDetailsChanged, (state, _, append) => decideUpdate(state, ...agentUpdateOf(append))),
      on(agentStatusChanged, (state, { data }, append) => {
        if (data.cause === 'update') return decideUpdate(state, ...agentUpdateOf(append));
        const heartbeat = data.cause === 'heartbeat' ? heartbeatOf(append) : undefined;
        return heartbeat && decideHeartbeat(state, heartbeat);
      }),
      on(agentHeartbeatReceived, (state, _, append) => {
        const heartbeat = heartbeatOf(append);
        return heartbeat && decideHeartbeat(state, heartbeat);
      }),
      on(tokensReported, (state, _, append) => decideReport(state, usageOf(append))),
      on(agentWoken, (state, { data }) => decideWake(state, data.reason)),
      on(agentSoulChanged, (state, { data }) => decideSoul(state, data.soul_content, data.template)),
      on(agentDeleted, (state, { data }) => decideDelete(state, data.remove_workspace)),
    ],
  }),
  replayable({
    name: 'task',
    decider: tasks.taskDecider,
    prefix: 'task-',
    again: (on) => [
      on(taskStatusChanged, (state, { data, event }) =>
        data.cause === 'bulk'
          ? decideStatus(state, data.after.status, data.completed_at ?? seconds(event.meta.at))
          : undefined,
      ),
      on(taskClaimed, (state, { data }) => decideClaim(state, data.agent, data.after.assignee_id ?? null)),
      on(taskDeleted, (state) => tasks.decideDelete(state)),
    ],
  }),
  replayable({
    name: 'project',
    decider: projects.projectDecider,
    prefix: 'project-',
    again: (on) => [
      // With other events in the append, the requested members are not known.
      on(projectUpdated, (state, { data }, append) =>
        append.length === 1 ? projects.decideUpdate(state, data.changes) : undefined,
      ),
      on([projectArchived, projectRestored], (state, { event }) =>
        projects.decideArchive(state, event.type === projectArchived.type),
      ),
    ],
  }),
  replayable({
    name: 'workflow',
    decider: workflows.workflowDecider,
    prefix: 'workflow-',
    again: (on) => [
      on(workflowUpdated, (state, { data: { workflow_id: _, ...changes } }) => workflows.decideChange(state, changes)),
      on(workflowUsed, (state) => workflows.decideChange(state, {})),
      on(workflowDeleted, (state) => workflows.decideDelete(state)),
    ],
  }),
  replayable({
    name: 'pipeline',
    decider: pipelines.pipelineDecider,
    prefix: 'pipeline-',
    again: (on) => [
      on(pipelineUpdated, (state, { data: { pipeline_id: _, ...changes } }) => pipelines.decideChange(state, changes)),
      on(pipelineUsed, (state) => pipelines.decideChange(state, {})),
      on(pipelineDeleted, (state) => pipelines.decideDelete(state)),
    ],
  }),
  replayable({
    name: 'setting',
    decider: settingsDecider,
    prefix: SETTINGS_STREAM,
    again: (on) => [
      on(settingsUpdated, (state, { data }) => decideSettings(state, data.changes)),
      on(settingReset, (state, { data }) => decideReset(state, data.name)),
    ],
  }),
];
