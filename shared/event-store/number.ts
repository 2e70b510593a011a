/** The metadata of new events: numbers, time and schema versions, besides what the caller provides. */
import type { EventDefinition } from '../events/define.ts';
import type { Metadata, Origin } from '../events/metadata.ts';
import type { Counters } from '../ports/counters.ts';
import { validMetadata } from './validate.ts';

/**
 * One for each event of an append, in their order.
 *
 * @param at Unix milliseconds
 * @throws ZodError for an invalid origin
 */
export async function numbered(
  counters: Pick<Counters, 'take'>,
  definitions: readonly Pick<EventDefinition, 'version'>[],
  at: number,
  origin: Origin,
): Promise<readonly Metadata[]> {
  const count = definitions.length;
  const first = await counters.take('event', count);
  return definitions.map(({ version }, index) => {
    const rest = count - 1 - index;
    return validMetadata({ version, number: first + index, at, ...(rest > 0 && { rest }), ...origin });
  });
}
