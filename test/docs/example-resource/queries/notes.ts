/** Notes: the list and one of them. */
import { type Reads, tables } from '../../../../queries/reads.ts';
import { recordAfter } from '../../../../queries/records.ts';
import { fieldNames } from '../../../../shared/fields.ts';
import { notesProjection, notesTable } from '../projections/notes.ts';
import { type NotesQuery, noteSchema } from '../shared/contract/notes.ts';

const own = (reads: Reads) => tables(reads, notesProjection);

const COLUMNS = fieldNames(noteSchema);

/** A page of notes, newest first. */
export async function listNotes(reads: Reads, workspace: number, { limit, offset }: NotesQuery) {
  const all = own(reads).selectFrom('notes').where('workspace_id', '=', workspace);
  const notes = await all
    .select(COLUMNS)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  const counted = await all.select(({ fn }) => fn.countAll<number>().as('total')).executeTakeFirst();
  return { notes, total: counted?.total ?? 0 };
}

/** A note as it is after a command. */
export const noteAfter = recordAfter('Note', [notesProjection, notesTable], COLUMNS);
