/** Notes as they are now. */
import { defineProjection, defineTable, insert, on, update } from '../../../../projections/projection.ts';
import { seconds } from '../../../../shared/time.ts';
import { noteDiscarded, noteRevised, noteWritten } from '../shared/events/notes.ts';

export const notesTable = defineTable(
  'notes',
  { workspace_id: 'int', id: 'bigint', text: 'text', author: 'text', created_at: 'bigint', updated_at: 'bigint' },
  { key: ['workspace_id', 'id'], indexes: ['workspace_id, created_at DESC, id DESC'] },
);

export const notesProjection = defineProjection({
  name: 'notes',
  version: 1,
  tables: [notesTable],
  handlers: [
    on(noteWritten, ({ data, meta }) => [
      insert(notesTable, {
        workspace_id: meta.workspace,
        id: data.noteId,
        text: data.text,
        author: meta.actor.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(noteRevised, ({ data, meta }) => [
      update(notesTable, { workspace_id: meta.workspace, id: data.noteId }, (row) => ({
        ...row,
        text: data.text,
        updated_at: seconds(meta.at),
      })),
    ]),
    on(noteDiscarded, ({ data, meta }) => [
      update(notesTable, { workspace_id: meta.workspace, id: data.noteId }, () => undefined),
    ]),
  ],
});
