/** The working memory of an agent: a text, and any other keys that the agent stores with it. */
import { AppError, conflict } from '../../shared/errors.ts';
import { agentMemoryCleared, agentMemoryFieldsSet, agentMemoryWritten } from '../../shared/events/agents/memory.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { MASK, restored } from '../../shared/secrets.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { type AgentState, agentDecider, agentStream, existing, sizeOfFields } from './agents.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Maximum size of the text and the other keys as JSON together, characters. */
export const MAX_MEMORY = 524_288;

/** The keys besides the text, for decisions that depend on them. `version` is the `AgentState.memoryVersion`. */
export const agentMemoryDecider = defineDecider<{ readonly version: number; readonly fields: Fields }>({
  kind: 'agent memory',
  snapshotVersion: 1,
  initial: { version: 0, fields: {} },
  folds: [
    on(agentMemoryFieldsSet, ({ version }, { data }) => ({ version: version + 1, fields: data.fields })),
    on(agentMemoryCleared, ({ version }) => ({ version: version + 1, fields: {} })),
  ],
});

/**
 * Replaces the memory, or appends to it under a heading with the time. Appending an empty text changes nothing.
 *
 * @param fields the new keys besides the text; undefined: unchanged
 * @param now Unix ms
 * @throws AppError 404; 413 over MAX_MEMORY characters
 */
export function decideMemory(
  state: AgentState,
  text: string,
  append: boolean,
  now: number,
  fields?: Fields,
): EventDraft[] {
  const agent = existing(state);
  const writes = !append || text !== '';
  const gap = state.memoryLength > 0 ? '\n\n' : '';
  const written = append ? `${gap}## ${new Date(now).toISOString()}\n${text}` : text;
  const size = writes ? written.length + (append ? state.memoryLength : 0) : state.memoryLength;
  const total = size + (fields === undefined ? state.memoryFields : sizeOfFields(fields));
  if (total > MAX_MEMORY) {
    throw new AppError(
      413,
      `The working memory would have ${total} characters; the limit is ${MAX_MEMORY}. Send less, or replace it.`,
    );
  }
  const drafts: EventDraft[] = [];
  if (writes) drafts.push(agentMemoryWritten.draft({ ...agent, text: written, append, size }));
  if (fields !== undefined) {
    drafts.push(agentMemoryFieldsSet.draft({ ...agent, fields, size, append, announced: writes }));
  }
  return drafts;
}

/** Empties the memory. @throws AppError 404 */
export const decideClearMemory = (state: AgentState): EventDraft[] => [agentMemoryCleared.draft(existing(state))];

/** Maximum number of attempts for a write that depends on the current keys. */
const MAX_TRIES = 8;

/**
 * Writes the memory. A replacement also replaces the other keys; with `append`, they are merged into the existing ones.
 *
 * @throws AppError 400 for a mask without a hidden value; 404; 409 when the memory keeps changing; 413
 */
export async function writeMemory(
  commands: Commands,
  context: CommandContext,
  id: number,
  { text, append, fields }: { readonly text: string; readonly append: boolean; readonly fields: Fields },
  now: () => number,
): Promise<Executed> {
  const stream = agentStream(context.origin.workspace, id);
  const given = Object.keys(fields).length > 0;
  const rests = given && (append || JSON.stringify(fields).includes(MASK));
  if (!rests) {
    return commands.execute(agentDecider, stream, context, (state) => {
      const replaces = given || (!append && state.memoryFields > 0);
      return decideMemory(state, text, append, now(), replaces ? fields : undefined);
    });
  }
  for (let attempt = 1; ; attempt++) {
    const { state: loaded } = await commands.load(agentMemoryDecider, stream);
    const next = restored(fields, loaded.fields, 'memory') as Fields;
    let moved = false;
    try {
      return await commands.execute(agentDecider, stream, context, (state) => {
        moved = state.registered && state.memoryVersion !== loaded.version;
        if (moved)
          throw conflict('The memory of this agent is being changed by other requests; try again.', { code: 'BUSY' });
        return decideMemory(state, text, append, now(), append ? { ...loaded.fields, ...next } : next);
      });
    } catch (error) {
      if (!moved || attempt >= MAX_TRIES) throw error;
    }
  }
}
