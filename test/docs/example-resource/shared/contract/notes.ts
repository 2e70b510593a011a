/** Requests and answers of notes. */
import { z } from 'zod';
import { limitParam, offsetParam, unixSeconds } from '../../../../../shared/contract/common.ts';
import { filledText } from '../../../../../shared/contract/storable.ts';
import { noteFields } from '../events/notes.ts';

export const noteSchema = z
  .object({
    id: z.int(),
    ...noteFields.shape,
    author: z.string(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
  })
  .meta({ id: 'Note' });

export const noteBody = z.object({ text: filledText(10_000) });
export const noteAnswer = z.object({ note: noteSchema });

export const notesQuery = z.object({ limit: limitParam(50), offset: offsetParam });
export type NotesQuery = z.infer<typeof notesQuery>;
export const notesAnswer = z.object({ notes: z.array(noteSchema), total: z.int() });
export const discardedAnswer = z.object({ success: z.literal(true) });
