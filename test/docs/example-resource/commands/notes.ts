/** The note: the state of its stream, its decisions, and the command that makes one. */
import { defineDecider, on } from '../../../../commands/decider.ts';
import type { CommandContext, Commands } from '../../../../commands/handler.ts';
import { reserveId } from '../../../../commands/reserve.ts';
import { notFound } from '../../../../shared/errors.ts';
import type { EventDraft } from '../../../../shared/events/define.ts';
import { noteDiscarded, noteRevised, noteWritten } from '../shared/events/notes.ts';

export interface NoteState {
  /** 0 until written, and again once discarded. */
  readonly id: number;
  readonly text: string;
}

export const noteStream = (workspace: number, id: number): string => `note-${workspace}-${id}`;

export const noteDecider = defineDecider<NoteState>({
  kind: 'note',
  initial: { id: 0, text: '' },
  folds: [
    on([noteWritten, noteRevised], (_state, { data }) => ({ id: data.noteId, text: data.text })),
    on(noteDiscarded, () => ({ id: 0, text: '' })),
  ],
});

/** @throws AppError 404 */
export function decideRevise(state: NoteState, text: string): EventDraft[] {
  if (state.id === 0) throw notFound('Note');
  return state.text === text ? [] : [noteRevised.draft({ noteId: state.id, text })];
}

/** @throws AppError 404 */
export function decideDiscard(state: NoteState): EventDraft[] {
  if (state.id === 0) throw notFound('Note');
  return [noteDiscarded.draft({ noteId: state.id })];
}

/** Writes a note. */
export async function writeNote(commands: Commands, context: CommandContext, text: string) {
  const { workspace } = context.origin;
  const id = await reserveId(commands, context, 'note', (one) => noteStream(workspace, one));
  const executed = await commands.execute(noteDecider, noteStream(workspace, id), context, () => [
    noteWritten.draft({ noteId: id, text }),
  ]);
  return { id, executed };
}
