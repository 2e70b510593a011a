/** Evaluates the alert rules of all workspaces on a schedule. */
import { newId } from '../../../shared/ids.ts';
import { type Evaluating, evaluateRule, PAGE } from '../../alerts/evaluations.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { counted, FIRST, type Place, paged, type Schedule } from '../schedule.ts';

/**
 * @returns the number of evaluated and of triggered rules. A failed rule does not stop the others.
 *
 * @param parts.deadline Unix ms: the rest is left to the next turn, which continues there
 * @param parts.begin the rule after which to begin
 * @throws the first failure, at the end
 */
export async function evaluateAlerts(
  parts: Evaluating & { readonly deadline: number; readonly begin: Place },
): Promise<{ readonly evaluated: number; readonly triggered: number; readonly stopped: Place }> {
  const run = newId();
  const failures: unknown[] = [];
  let evaluated = 0;
  let triggered = 0;
  let stopped = parts.begin;
  for await (const rule of paged((after, limit) => parts.reads.watched(after, limit), PAGE, parts.begin)) {
    if (parts.now() >= parts.deadline) return { evaluated, triggered, stopped };
    stopped = { workspace: rule.workspace, id: rule.id };
    evaluated++;
    try {
      const context = scheduledContext(run, rule.tenant, rule.workspace);
      if ((await evaluateRule(parts, context, rule)).trigger) triggered++;
    } catch (error) {
      parts.failed(error, rule);
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return { evaluated, triggered, stopped: FIRST };
}

/** Maximum duration of one turn, milliseconds; the next one continues. */
const TURN_MS = 40_000;
/** Interval while the schedule is off, and runs only on request; seconds. */
const USUAL = 60;

/** @param parts.everySeconds 0: rules are not evaluated on a schedule */
export function alertsSchedule(parts: Evaluating & { readonly everySeconds: number }): Schedule {
  const { everySeconds, now } = parts;
  const everyMs = (everySeconds || USUAL) * 1_000;
  /** Where the last turn stopped. */
  let begin = FIRST;
  return {
    id: 'alert_evaluation',
    kind: 'alert-evaluation',
    name: 'Evaluate alert rules',
    everyMs,
    enabled: async () => everySeconds > 0,
    async run() {
      const deadline = now() + Math.min(TURN_MS, everyMs / 2);
      const { stopped, evaluated, triggered } = await evaluateAlerts({ ...parts, deadline, begin });
      begin = stopped;
      return `${counted(evaluated, 'rule was', 'rules were')} evaluated, ${triggered} triggered.`;
    },
  };
}
