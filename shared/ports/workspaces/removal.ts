/** The contents of a workspace according to the read models, for moving them out of a deleted one. */
import type { EventOf } from '../../events/define.ts';
import type { projectCreated } from '../../events/projects/projects.ts';

export interface MovingAgent {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly session_key: string | null;
  readonly hidden: boolean;
  readonly runtime_type: string | null;
  readonly source: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly soul: string | null;
  readonly memory: string;
  readonly memoryFields: Readonly<Record<string, unknown>>;
}

export interface MovingProject extends Omit<EventOf<typeof projectCreated>['data'], 'project_id'> {
  readonly id: number;
  readonly archived: boolean;
}

export interface RemovedWorkspace {
  readonly tenant: number;
  readonly workspace: number;
  readonly moves_to: number;
}

/** Automatic activities of a workspace: webhooks, alert rules, recurring tasks, syncs of projects. */
export type ActiveKind = 'webhooks' | 'rules' | 'recurring tasks' | 'synced projects';

export interface WorkspaceContents {
  agentCount(workspace: number): Promise<number>;
  /** Ids of users, some of them. */
  users(workspace: number): Promise<readonly number[]>;
  /** Agents, some of them. */
  agents(workspace: number): Promise<readonly MovingAgent[]>;
  /** Projects that the other workspace does not have yet, some of them; without the general one. */
  projects(workspace: number, movesTo: number): Promise<readonly MovingProject[]>;
  /** Ids of records that are switched on, some of them. */
  active(workspace: number, kind: ActiveKind): Promise<readonly number[]>;
  /**
   * Workspaces whose deletion has begun, and deleted ones into which a record came at the last moment; some of them.
   */
  inRemoval(): Promise<readonly RemovedWorkspace[]>;
}
