/** Notes: the list and one of them. */
import { type Reads, tables } from '../../../../queries/reads.ts';
import { notesProjection } from '../projections/notes.ts';
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

export async function findNote(reads: Reads, workspace: number, id: number) {
  return own(reads)
    .selectFrom('notes')
    .where('workspace_id', '=', workspace)
    .where('id', '=', id)
    .select(COLUMNS)
    .executeTakeFirst();
}
