/**
 * Commands on records that have an id and a stream each.
 *
 * Ids of new records under an `Idempotency-Key`: a request that is repeated after a crash must not take a second id,
 * because names may have been claimed for the first one.
 */
import type { EventDraft } from '../shared/events/define.ts';
import type { Decider } from './decider.ts';
import type { Commands, Executed, ExecuteOptions } from './handler.ts';
import { type CommandContext, nextStep } from './intents.ts';

/**
 * Takes the next id of `counter`. It is stored with the request as an intent without events, so a repeated request gets
 * the same id.
 *
 * @param streamOf the new record's stream; it must end in `-<id>`
 */
export async function reserveId(
  commands: Commands,
  context: CommandContext,
  counter: string,
  streamOf: (id: number) => string,
): Promise<number> {
  const step = nextStep(context);
  const earlier = context.intents?.recorded[step];
  if (earlier) return Number(earlier.stream.slice(earlier.stream.lastIndexOf('-') + 1));
  const id = await commands.counters.take(counter);
  await context.intents?.record(step, { stream: streamOf(id), expected: 'none', events: [] });
  return id;
}

/**
 * Creates a record under the next id of `counter`.
 *
 * @param streamOf the new record's stream, in the workspace of the caller; it must end in `-<id>`
 */
export async function createRecord<State>(
  commands: Commands,
  context: CommandContext,
  [counter, decider, streamOf]: readonly [string, Decider<State>, (workspace: number, id: number) => string],
  decide: (id: number) => readonly EventDraft[],
  options: Pick<ExecuteOptions, 'unless'> = {},
): Promise<{ readonly id: number; readonly executed: Executed }> {
  const { workspace } = context.origin;
  const id = await reserveId(commands, context, counter, (one) => streamOf(workspace, one));
  const executed = await commands.execute(decider, streamOf(workspace, id), context, () => decide(id), {
    ...options,
    fresh: true,
  });
  return { id, executed };
}

/**
 * A command that decides on the stream of one record in the workspace of the caller.
 *
 * @throws AppError what `decide` throws
 */
export const onRecord =
  <State, Args extends readonly unknown[]>(
    decider: Decider<State>,
    streamOf: (workspace: number, id: number) => string,
    decide: (state: State, ...args: Args) => readonly EventDraft[],
  ) =>
  (commands: Commands, context: CommandContext, id: number, ...args: Args): Promise<Executed> =>
    commands.execute(decider, streamOf(context.origin.workspace, id), context, (state) => decide(state, ...args));

/** Whether an earlier run of this request reserved an id as its next step, and so was about to create a record. */
export const hasReserved = ({ intents, step = 0 }: CommandContext): boolean =>
  intents?.recorded[step]?.events.length === 0;
