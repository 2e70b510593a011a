/** Alert rules: the list, one rule, and the rules to evaluate. */
import { alertRulesProjection, alertRulesTable } from '../../projections/alerts/rules.ts';
import { type Condition, type Cooldown, coolsRecords, inCooldown } from '../../shared/contract/alerts/conditions.ts';
import { type AlertRuleRecord, alertRuleSchema } from '../../shared/contract/alerts/rules.ts';
import { fieldNames } from '../../shared/fields.ts';
import type { TaskView } from '../../shared/identity.ts';
import { BEGINNING } from '../../shared/ports/event-log.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { recipientOf } from '../names.ts';
import { countOf, inWorkspace, type Reads, tables } from '../reads.ts';
import { recordAfter } from '../records.ts';
import { conditionMet, type Evaluated, type Matching, matchingRecords } from './conditions.ts';

const own = (reads: Reads) => tables(reads, alertRulesProjection);
const ofWorkspace = (reads: Reads, workspace: number) =>
  inWorkspace(reads, alertRulesProjection, 'alert_rules', workspace);

const COLUMNS = fieldNames(alertRuleSchema);

/** Newest first; there are never many. Each has the position of the event that last changed it. */
export async function listRules(
  reads: Reads,
  workspace: number,
): Promise<{ readonly rule: AlertRuleRecord; readonly position: number }[]> {
  const rows = await ofWorkspace(reads, workspace)
    .select([...COLUMNS, 'position'])
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map(({ position, ...rule }) => ({ rule, position }));
}

/** Undefined when the workspace has no such rule. */
export const findRule = (reads: Reads, workspace: number, id: number): Promise<AlertRuleRecord | undefined> =>
  ofWorkspace(reads, workspace).select(COLUMNS).where('id', '=', id).executeTakeFirst();

/** A rule after a command. */
export const ruleAfter = recordAfter('Alert rule', [alertRulesProjection, alertRulesTable], COLUMNS);

export const countRules = (reads: Reads, workspace: number): Promise<number> => countOf(ofWorkspace(reads, workspace));

/** An enabled rule. */
export interface WatchedRule extends Condition, Cooldown, RecordPlace {
  readonly name: string;
  readonly trigger_count: number;
  /** Unix seconds. */
  readonly last_triggered_at: number | null;
  /** Position of the newest activity for which it triggered. */
  readonly reported_to: number | null;
  /** Position of the last event that changed the rule. */
  readonly position: number;
}

/** The reads of evaluations. */
export type AlertReads = ReturnType<typeof alertReads>;
export const alertReads = (reads: Reads) => ({
  /** Enabled rules by workspace and id, after `after`; of one workspace or of all; at most `limit`. */
  watched(
    after: { readonly workspace: number; readonly id: number },
    limit: number,
    workspace?: number,
  ): Promise<readonly WatchedRule[]> {
    let matching = own(reads)
      .selectFrom('alert_rules')
      .where('enabled', '=', true)
      .where(({ eb, refTuple, tuple }) => eb(refTuple('workspace_id', 'id'), '>', tuple(after.workspace, after.id)));
    if (workspace !== undefined) matching = matching.where('workspace_id', '=', workspace);
    return matching
      .select([
        'tenant_id as tenant',
        'workspace_id as workspace',
        'id',
        'name',
        'entity_type',
        'condition_field',
        'condition_operator',
        'condition_value',
        'cooldown_minutes',
        'cooldown_per',
        'trigger_count',
        'last_triggered_at',
        'reported_to',
        'position',
      ])
      .orderBy('workspace_id')
      .orderBy('id')
      .limit(limit)
      .execute();
  },
  /** The recipient that a text names (`queries/names.ts`). */
  recipientOf: (workspace: number, text: string): Promise<string> => recipientOf(reads, workspace, text),
  /** Ids of the records of a rule that are in a cooldown of their own now, Unix seconds. */
  async quiet(rule: WatchedRule, now: number): Promise<readonly number[]> {
    if (!coolsRecords(rule) || rule.trigger_count === 0) return [];
    const row = await ofWorkspace(reads, rule.workspace).select('cooling').where('id', '=', rule.id).executeTakeFirst();
    return Object.entries((row?.cooling ?? {}) as Readonly<Record<string, number>>).flatMap(([id, at]) =>
      inCooldown(rule.cooldown_minutes, at, now) ? Number(id) : [],
    );
  },
  /**
   * Whether the condition of a rule is met now, Unix seconds, by other records than the quiet ones. Reads only as many
   * records as are needed to decide.
   */
  isMet: (rule: WatchedRule, now: number, quiet: readonly number[]): Promise<boolean> =>
    conditionMet(reads, evaluatedOf(rule, now, quiet)),
  /** The records by which the condition of a rule is met, as its recipient may see them; ids of at most `most`. */
  matching: (
    rule: WatchedRule,
    now: number,
    quiet: readonly number[],
    view: TaskView,
    most: number,
  ): Promise<Matching> => matchingRecords(reads, evaluatedOf(rule, now, quiet), view, most),
});

const evaluatedOf = (rule: WatchedRule, now: number, quiet: readonly number[]): Evaluated => ({
  workspace: rule.workspace,
  condition: rule,
  now,
  reportedTo: rule.reported_to ?? BEGINNING,
  quiet,
});
