/** The effect of a task's change on its assignee: completed, or failed and why. */
import { frontOf } from '../../storable.ts';
import type { SignalDraft } from '../define.ts';

/** Characters of a reason. */
const SHOWN = 500;

interface Turn {
  readonly task_id: number;
  readonly title: string;
  /** Null: none. */
  readonly agent: string | null;
  /** Null: the task is new. */
  readonly before: { readonly status: string; readonly outcome?: string | null } | null;
  readonly after: { readonly status: string; readonly outcome?: string | null };
  readonly reason?: string | null;
}

/** A failure in a task. The description is the reason, if there is one. */
export function taskFailure(
  agent: string,
  type: string,
  { task_id, title }: Pick<Turn, 'task_id' | 'title'>,
  what: string,
  reason: string | null = null,
): SignalDraft {
  const error = reason === null || reason.trim() === '' ? null : frontOf(reason, SHOWN);
  const data = { task_id, title, ...(error !== null && { error_message: error }) };
  return { agent, kind: 'failed', type, description: error ?? what, data };
}

/** A task that became done counts as completed; one that became `failed`, or got a bad outcome, counts as failed. */
export function taskSignals({ task_id, title, agent, before, after, reason }: Turn): SignalDraft[] {
  if (agent === null || agent === '') return [];
  const signals: SignalDraft[] = [];
  if (after.status === 'done' && before?.status !== 'done') {
    const description = `Completed task "${title}"`;
    signals.push({ agent, kind: 'completed', type: 'task_completed', description, data: { task_id, title } });
  }
  const { outcome } = after;
  const bad = (outcome === 'failed' || outcome === 'abandoned') && before?.outcome !== outcome;
  if (after.status === 'failed' && before?.status !== 'failed')
    signals.push(taskFailure(agent, 'task_failed', { task_id, title }, `Task "${title}" failed`, reason));
  else if (bad) {
    const type = `task_outcome_${outcome}`;
    signals.push(taskFailure(agent, type, { task_id, title }, `Outcome of task "${title}": ${outcome}`, reason));
  }
  return signals;
}
