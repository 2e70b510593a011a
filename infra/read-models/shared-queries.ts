/** The queries that the API shares between requests, now and at any moment of the past. */
import type { Services, SharedQueries } from '../../api/services.ts';
import { createInboxes } from '../../queries/agents/heartbeat.ts';
import { createLastBeats } from '../../queries/agents/leases.ts';
import { createChatDirectory } from '../../queries/chat.ts';
import { notificationDirectory } from '../../queries/monitoring/notifications.ts';
import { createDisplayNames } from '../../queries/names.ts';
import { projectDirectory, projectTasks } from '../../queries/projects/projects.ts';
import { createTaskProjects } from '../../queries/projects/tickets.ts';
import type { Reads } from '../../queries/reads.ts';
import { createTaskStats } from '../../queries/tasks/assignments.ts';
import { tokenDirectory } from '../../queries/tokens/reports.ts';
import type { Freshness } from '../../shared/ports/read-models.ts';

type Stamps = Pick<Freshness, 'stamp' | 'stampFor'>;

/** @param now Unix milliseconds */
export const sharedQueries = (
  reads: Reads,
  stamps: Stamps,
  now: () => number,
): SharedQueries & Pick<Services, 'queriesAt'> => ({
  ...queriesOn(reads, stamps, now),
  queriesAt({ position, at }, deleted) {
    // The past does not change.
    const stamp = async () => ({ value: '', position });
    const stampFor = async () => ({ value: '', position, isCurrent: true });
    return queriesOn(reads.asOf(position, at, deleted), { stamp, stampFor }, () => at);
  },
});

function queriesOn(reads: Reads, freshness: Stamps, now: () => number): SharedQueries {
  return {
    reads,
    now,
    displayNames: createDisplayNames({ reads, freshness }),
    inboxes: createInboxes({ reads, freshness, now }),
    projects: projectDirectory(reads, freshness),
    projectTasks: projectTasks(reads),
    taskProjects: createTaskProjects({ reads, freshness }),
    chat: createChatDirectory({ reads, freshness }),
    notifications: notificationDirectory(reads),
    taskStats: createTaskStats(reads),
    lastBeatOf: createLastBeats(reads, freshness),
    tokens: tokenDirectory(reads),
  };
}
