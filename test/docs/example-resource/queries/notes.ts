/** Notes: the list and one of them. */
import { countOf, inWorkspace, type Reads } from '../../../../queries/reads.ts';
import { recordAfter } from '../../../../queries/records.ts';
import { fieldNames } from '../../../../shared/fields.ts';
import { notesProjection, notesTable } from '../projections/notes.ts';
import { type NotesQuery, noteSchema } from '../shared/contract/notes.ts';

const COLUMNS = fieldNames(noteSchema);

/** A page of notes, newest first. */
export async function listNotes(reads: Reads, workspace: number, { limit, offset }: NotesQuery) {
  const all = inWorkspace(reads, notesProjection, 'notes', workspace);
  const notes = await all
    .select(COLUMNS)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  return { notes, total: await countOf(all) };
}

/** A note as it is after a command. */
export const noteAfter = recordAfter('Note', [notesProjection, notesTable], COLUMNS);
