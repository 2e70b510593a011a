/** The limits for an agent's config, which apply to the merged result. */
import { invalid } from '../../shared/errors.ts';
import { storageProblem, VALUE_BOUNDS } from '../../shared/storable.ts';

type Config = Readonly<Record<string, unknown>>;

/** Why a config cannot be stored, as the end of a sentence about it; undefined if it can. */
export function configProblem(config: Config): string | undefined {
  const problem = storageProblem(config, VALUE_BOUNDS);
  if (!problem) return undefined;
  return problem.path.length > 0 ? `${problem.reason} (${problem.path.join('.')})` : problem.reason;
}

/**
 * Checks a config that was merged from several parts. Each part was within the limits, but together they may not be.
 *
 * @throws AppError 400
 */
export function bounded<C extends Config | undefined>(config: C): C {
  const reason = config && configProblem(config);
  if (reason === undefined) return config;
  throw invalid(`The agent's config, with everything that is merged into it, ${reason}; nothing was changed.`, [
    `config: ${reason}`,
  ]);
}
