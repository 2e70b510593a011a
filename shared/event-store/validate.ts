/** What an event may hold: data and metadata as their schemas say, and of new data, that every store can hold it. */
import '../messages.ts';
import { AppError } from '../errors.ts';
import type { DomainEvent, EventDefinition } from '../events/define.ts';
import { metadataSchema } from '../events/metadata.ts';
import { parserOf } from '../parsing.ts';
import { EVENT_BOUNDS, storageProblem } from '../storable.ts';

type Data = DomainEvent['data'];

/** @throws ZodError */
export const validMetadata = parserOf(metadataSchema);

const dataParsers = new WeakMap<EventDefinition, (value: unknown) => Data>();

/** @throws ZodError */
export function validData(definition: EventDefinition, value: unknown): Data {
  let parse = dataParsers.get(definition);
  if (!parse) {
    parse = parserOf(definition.schema);
    dataParsers.set(definition, parse);
  }
  return parse(value);
}

/**
 * A copy of what is to be appended, as a reader of the log will see it. The log limits the size of an append in bytes.
 *
 * @throws ZodError
 * @throws AppError 400 for data that is nested too deeply or contains text that cannot be stored; 413 for data that is
 *   too large
 */
export function validDraft(definition: EventDefinition, data: unknown): Data {
  const problem = storageProblem(data, EVENT_BOUNDS);
  if (!problem) return validData(definition, JSON.parse(JSON.stringify(data)));
  const where = problem.path.join('.') || 'The change';
  throw new AppError(problem.kind === 'size' ? 413 : 400, `${where} ${problem.reason}.`);
}
