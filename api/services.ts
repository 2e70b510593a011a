/** Everything the API needs from the other layers; assembled in `infra/main.ts`. */
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { GatewaySessions } from '../commands/admin/gateway-sessions.ts';
import type { Commands } from '../commands/handler.ts';
import type { LimitParts, RecentCounts } from '../commands/limits.ts';
import type { TaskQueue } from '../commands/tasks/queue.ts';
import type { Inboxes } from '../queries/agents/heartbeat.ts';
import type { EachIsEvent, LastBeatOf } from '../queries/agents/leases.ts';
import type { Backtests } from '../queries/alerts/backtests.ts';
import type { PeopleDirectory } from '../queries/auth/people.ts';
import type { createChatDirectory } from '../queries/chat.ts';
import type { NotificationDirectory } from '../queries/monitoring/notifications.ts';
import type { DisplayNames } from '../queries/names.ts';
import type { ProjectDirectory, ProjectTasks } from '../queries/projects/projects.ts';
import type { TaskProjects } from '../queries/projects/tickets.ts';
import type { Reads } from '../queries/reads.ts';
import type { Records } from '../queries/records.ts';
import type { createTaskStats } from '../queries/tasks/assignments.ts';
import type { TokenDirectory } from '../queries/tokens/reports.ts';
import type { Isolations } from '../queries/workspaces/isolation.ts';
import type { EventStore } from '../shared/event-store.ts';
import type { Backups } from '../shared/ports/admin/backup.ts';
import type { Gateways } from '../shared/ports/admin/gateways.ts';
import type { Pause } from '../shared/ports/admin/pause.ts';
import type { Scheduler } from '../shared/ports/admin/scheduler.ts';
import type { Leases } from '../shared/ports/agents/leases.ts';
import type { VerifyGoogleToken } from '../shared/ports/auth/google.ts';
import type { OidcProvider } from '../shared/ports/auth/oidc.ts';
import type { PersonRecords } from '../shared/ports/auth/people.ts';
import type { Credentials } from '../shared/ports/credentials.ts';
import type { Github } from '../shared/ports/github/client.ts';
import type { LogIndex, Moment } from '../shared/ports/history/events.ts';
import type { Proofs } from '../shared/ports/history/proofs.ts';
import type { IdempotencyStore } from '../shared/ports/idempotency.ts';
import type { Locks } from '../shared/ports/locks.ts';
import type { LogEntries } from '../shared/ports/monitoring/logs.ts';
import type { ReadHost } from '../shared/ports/monitoring/status.ts';
import type { Outgoing } from '../shared/ports/outgoing.ts';
import type { Freshness, ReadModels } from '../shared/ports/read-models.ts';
import type { Releases } from '../shared/ports/releases.ts';
import type { WebhookRecords } from '../shared/ports/webhooks/queue.ts';
import type { SecurityEvents } from './auth/security-events.ts';
import type { AccountGuard, LimitStore } from './http/limits.ts';
import type { ApiSettings } from './settings.ts';
import type { StreamHub } from './stream/hub.ts';

export interface HealthReport {
  readonly ok: boolean;
  /** One word per check; public, in the response of `/health/ready`. */
  readonly checks: Readonly<Record<string, string>>;
  /** Positions and reasons behind a failed check, for operators only. */
  readonly details: Readonly<Record<string, string>>;
}

/** Queries that the API shares, on the read models of one moment. */
export interface SharedQueries {
  readonly reads: Reads;
  readonly now: () => number;
  readonly displayNames: DisplayNames;
  readonly inboxes: Inboxes;
  readonly chat: ReturnType<typeof createChatDirectory>;
  readonly projects: ProjectDirectory;
  readonly projectTasks: ProjectTasks;
  readonly taskProjects: TaskProjects;
  readonly notifications: NotificationDirectory;
  readonly taskStats: ReturnType<typeof createTaskStats>;
  readonly lastBeatOf: LastBeatOf;
  readonly tokens: TokenDirectory;
}

export interface Services extends SharedQueries {
  /**
   * The same queries at a moment of the past, with its time as the current time.
   *
   * @param deleted whether they show what was deleted since
   */
  readonly queriesAt: (moment: Moment, deleted: boolean) => SharedQueries;
  /** `displayNames` without waiting for the read model, for writes. */
  readonly namesAtOnce: DisplayNames;
  readonly people: PeopleDirectory;
  readonly personRecords: PersonRecords;
  readonly settings: ApiSettings;
  /** Bytes of a page of records; default `PAGE_BYTES`. */
  readonly pageBytes?: number;
  readonly log: Logger;
  /** Of this program. */
  readonly version: string;
  readonly commands: Commands;
  readonly store: EventStore;
  /** Records for responses of writes. */
  readonly records: Records;
  readonly readModels: ReadModels;
  readonly locks: Locks;
  readonly recentCounts: RecentCounts;
  readonly credentials: Credentials;
  readonly freshness: Freshness;
  readonly leases: Leases;
  readonly eachIsEvent: EachIsEvent;
  readonly queue: TaskQueue;
  readonly logs: LogEntries;
  readonly logIndex: LogIndex;
  readonly proofs: Proofs;
  readonly scheduler: Scheduler;
  readonly gateways: Gateways;
  readonly gatewaySessions: GatewaySessions;
  readonly github: Github;
  readonly backups: Backups;
  readonly pause: Pause;
  readonly backtests: Backtests;
  readonly host: ReadHost;
  readonly releases: Releases;
  readonly idempotency: IdempotencyStore;
  readonly webhooks: WebhookRecords;
  readonly outgoing: Outgoing;
  readonly metrics: Registry;
  /** The store of one limit class, shared between processes where Redis is configured. */
  readonly limitStore: (name: string, windowMs: number) => LimitStore;
  readonly accountGuard: AccountGuard;
  /** Whether stores are reachable and projections are not too far behind. */
  readonly ready: () => Promise<HealthReport>;
  readonly stream: StreamHub;
  readonly securityEvents: SecurityEvents;
  readonly isolation: Isolations;
  readonly verifyGoogleToken: VerifyGoogleToken;
  /** Undefined: no OpenID Connect provider is configured. */
  readonly oidc: OidcProvider | undefined;
  /** The folder that the build wrote the console to. */
  readonly consoleFolder: URL;
}

/** The parts of a limit per workspace. @param count how many records a workspace has, according to the read model */
export const limitsOf = (
  { locks, readModels, reads, recentCounts }: Services,
  count: (reads: Reads, workspace: number) => Promise<number>,
): LimitParts => ({
  locks,
  readModels,
  recentCounts,
  count: (workspace) => count(reads, workspace),
  countThere: (workspace) => count(reads.at({}), workspace),
});
