/** The note: the state of its stream, its decisions, and the command that makes one. */
import { defineDecider, on } from '../../../../commands/decider.ts';
import type { CommandContext, Commands } from '../../../../commands/handler.ts';
import { createRecord } from '../../../../commands/record-ids.ts';
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
    on([noteWritten, noteRevised], (_state, { data }) => ({ id: data.note_id, text: data.text })),
    on(noteDiscarded, () => ({ id: 0, text: '' })),
  ],
});

/** @throws AppError 404 */
export function decideRevise(state: NoteState, text: string): EventDraft[] {
  if (state.id === 0) throw notFound('Note');
  return state.text === text ? [] : [noteRevised.draft({ note_id: state.id, text })];
}

/** @throws AppError 404 */
export function decideDiscard(state: NoteState): EventDraft[] {
  if (state.id === 0) throw notFound('Note');
  return [noteDiscarded.draft({ note_id: state.id })];
}

/** Writes a note. */
export const writeNote = (commands: Commands, context: CommandContext, text: string) =>
  createRecord(commands, context, ['note', noteDecider, noteStream], (id) => [
    noteWritten.draft({ note_id: id, text }),
  ]);
