/** Everything that happens to notes. Stream: `note-<workspace>-<id>`. */
import { z } from 'zod';
import { defineEvent } from '../../../../../shared/events/define.ts';
import { seconds } from '../../../../../shared/time.ts';

const noteId = z.int().positive();
const text = z.string();

export const noteWritten = defineEvent({
  type: 'NoteWritten',
  version: 1,
  doc: 'A note exists from now on.',
  schema: z.object({ noteId, text }),
  activity: ({ data, meta }) => ({
    type: 'note_written',
    entity_type: 'note',
    entity_id: data.noteId,
    description: `${meta.actor.name} wrote a note`,
  }),
  frames: ({ data, meta }) => [
    { type: 'note.created', data: { id: data.noteId, text: data.text, created_at: seconds(meta.at) } },
  ],
});

export const noteRevised = defineEvent({
  type: 'NoteRevised',
  version: 1,
  doc: 'The text of a note was replaced.',
  schema: z.object({ noteId, text }),
});

export const noteDiscarded = defineEvent({
  type: 'NoteDiscarded',
  version: 1,
  doc: 'A note is gone from the lists. What it said stays in the log.',
  schema: z.object({ noteId }),
  audit: ({ data }) => ({ action: 'note_discarded', target_type: 'note', target_id: data.noteId }),
});

export const noteEvents = [noteWritten, noteRevised, noteDiscarded];
