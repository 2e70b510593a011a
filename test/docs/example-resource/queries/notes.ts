/** Notes: the list and one of them. */
import { type Reads, tables } from '../../../../queries/reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from '../../../../queries/records.ts';
import { notesProjection, notesTable } from '../projections/notes.ts';
import type { NotesQuery } from '../shared/contract/notes.ts';

const own = (reads: Reads) => tables(reads, notesProjection);

const COLUMNS = ['id', 'text', 'author', 'created_at', 'updated_at'] as const;

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

/** A note as it is after a command. @throws AppError 404 when it was discarded by then */
export async function noteAfter(records: Records, workspace: number, id: number, executed: Executed) {
  const key = { workspace_id: workspace, id };
  return columnsOf(await rowAfter(records, 'Note', [notesProjection, notesTable], key, executed), COLUMNS);
}
