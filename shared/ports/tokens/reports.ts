/** Data about tokens from the read models, for commands that report them. */

import type { ModelPrice } from '../../contract/tokens/costs.ts';
import type { TokenReport } from '../../events/tokens/reports.ts';

/** A report with the time at which it was recorded, Unix ms. */
export interface KnownReport extends TokenReport {
  readonly at: number;
}

export interface TokenKnowledge {
  /**
   * The ledger's open page, from 1. The reports of all pages before it are visible; those of this page and later ones
   * may not be.
   */
  readonly page: number;
  /** By id. */
  readonly reports: ReadonlyMap<string, KnownReport>;
  /** Ids of agents by name. */
  readonly agents: ReadonlyMap<string, number>;
  /** Those of the requested tasks that exist. */
  readonly tasks: ReadonlySet<number>;
  /** The workspace's own prices. */
  readonly prices: readonly ModelPrice[];
}

export interface TokenDirectory {
  /** All lookups as of one moment. */
  lookUp(
    workspace: number,
    asked: {
      readonly reportIds?: readonly string[];
      readonly agentNames?: readonly string[];
      readonly taskIds?: readonly number[];
    },
  ): Promise<TokenKnowledge>;
}
