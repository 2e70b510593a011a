/**
 * The owners of a task at the time of an event, from the events of the task's own stream. So a client that resumes gets
 * the same frames as a live client, and a live client need not wait for read models.
 */
import { LRUCache } from 'lru-cache';
import { EventUnreadableError } from '../../shared/errors.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { creatorAgentOf, taskCreated, taskStream } from '../../shared/events/tasks/tasks.ts';
import type { TaskOwners } from '../../shared/identity.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { takingTurnsByKey } from '../../shared/waiting.ts';
import type { StreamSource } from './source.ts';

/** Limits of the cache: tasks, and changes of assignees in total. */
const REMEMBERED = { tasks: 10_000, changes: 100_000 };

type Assignee = Pick<TaskOwners, 'assignedTo' | 'assigneeId'>;

/** What is known of a task. */
interface Known {
  creatorAgent: number | null;
  /** Assignees, and the position from which each applies, oldest first. */
  readonly assignees: ({ readonly from: Position } & Assignee)[];
  /** The revision to read next, and the position up to which the cache is complete. */
  next: number;
  upTo: Position;
}

/** The assignee after an event; undefined if the event does not set one. */
function assigneeAfter({ data }: DomainEvent): Assignee | undefined {
  const { assigned_to: assignedTo, assignee_id: assigneeId = null } = (data.after ?? data.task ?? {}) as {
    readonly assigned_to?: string | null;
    readonly assignee_id?: number;
  };
  return assignedTo === undefined ? undefined : { assignedTo, assigneeId };
}

export interface Owners {
  /** The owners of the task right after the event at a position; undefined if there was no such task. */
  at(workspace: number, task: number, position: Position): Promise<TaskOwners | undefined>;
}

export function createOwners({ stream, decode }: Pick<StreamSource, 'stream' | 'decode'>): Owners {
  const tasks = new LRUCache<string, Known>({
    max: REMEMBERED.tasks,
    maxSize: REMEMBERED.changes,
    sizeCalculation: ({ assignees }) => assignees.length + 1,
  });
  // Two concurrent readers of one task would both add the same events.
  const inTurn = takingTurnsByKey(() => false);

  async function read(name: string, known: Known, position: Position): Promise<Known> {
    if (known.upTo >= position) return known;
    for await (const batch of stream(name, known.next)) {
      for (const logged of batch) {
        known.next = logged.revision + 1;
        known.upTo = logged.position;
        let event: DomainEvent;
        try {
          event = await decode(logged, true);
        } catch (error) {
          if (error instanceof EventUnreadableError) continue;
          throw error;
        }
        if (event.type === taskCreated.type) known.creatorAgent = creatorAgentOf(event.meta);
        const assignee = assigneeAfter(event);
        const last = known.assignees.at(-1);
        const same = last?.assignedTo === assignee?.assignedTo && last?.assigneeId === assignee?.assigneeId;
        if (assignee !== undefined && !(last && same)) known.assignees.push({ from: event.position, ...assignee });
      }
    }
    // The event at this position is in the log, and so is everything before it on the stream.
    known.upTo = Math.max(known.upTo, position);
    return known;
  }

  return {
    async at(workspace, task, position) {
      const name = taskStream(workspace, task);
      const known = await inTurn(name, async () => {
        const found = tasks.get(name) ?? { creatorAgent: null, assignees: [], next: 0, upTo: 0 };
        // Kept only after a complete read: a failed read is repeated.
        tasks.delete(name);
        const now = await read(name, found, position);
        tasks.set(name, now);
        return now;
      });
      const assigned = known.assignees.findLast(({ from }) => from <= position);
      return (
        assigned && {
          assignedTo: assigned.assignedTo,
          assigneeId: assigned.assigneeId,
          creatorAgent: known.creatorAgent,
        }
      );
    },
  };
}
