/** Alert rules as the read models have them, and whether their conditions are met. */
import type { Condition } from '../../contract/alerts/conditions.ts';
import type { RecordPlace } from '../read-models.ts';

/** An enabled rule. */
export interface WatchedRule extends Condition, RecordPlace {
  readonly name: string;
  readonly cooldown_minutes: number;
  /** Unix seconds. */
  readonly last_triggered_at: number | null;
  /** Position of the last event that changed the rule. */
  readonly position: number;
}

export interface AlertReads {
  /** Enabled rules by workspace and id, after `after`; of one workspace or of all; at most `limit`. */
  watched(
    after: { readonly workspace: number; readonly id: number },
    limit: number,
    workspace?: number,
  ): Promise<readonly WatchedRule[]>;
  /** Whether the condition of a rule is met now, Unix seconds. Reads only as many records as are needed to decide. */
  isMet(rule: WatchedRule, now: number): Promise<boolean>;
}
