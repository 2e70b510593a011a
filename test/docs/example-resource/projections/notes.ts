/** Notes as they are now. */
import { columnsFor } from '../../../../projections/columns.ts';
import { defineProjection, defineTable, insert, on, remove, set } from '../../../../projections/projection.ts';
import { seconds } from '../../../../shared/time.ts';
import { noteSchema } from '../shared/contract/notes.ts';
import { noteDiscarded, noteRevised, noteWritten } from '../shared/events/notes.ts';

export const notesTable = defineTable(
  'notes',
  { workspace_id: 'int', ...columnsFor(noteSchema) },
  { key: ['workspace_id', 'id'], indexes: ['workspace_id, created_at DESC, id DESC'] },
);

export const notesProjection = defineProjection({
  name: 'notes',
  version: 1,
  tables: [notesTable],
  handlers: [
    on(noteWritten, ({ data: { note_id: id, ...fields }, meta }) => [
      insert(notesTable, {
        workspace_id: meta.workspace,
        id,
        ...fields,
        author: meta.actor.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(noteRevised, ({ data: { note_id: id, ...fields }, meta }) => [
      set(notesTable, { workspace_id: meta.workspace, id }, meta, fields),
    ]),
    on(noteDiscarded, ({ data, meta }) => [remove(notesTable, { workspace_id: meta.workspace, id: data.note_id })]),
  ],
});
