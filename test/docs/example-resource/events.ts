/** Everything that happens to notes. Stream: `note-<workspace>-<id>`. In a room of its own: `shared/events/note.ts`. */
import { z } from 'zod';
import { defineEvent } from '../../../shared/events/define.ts';
import { seconds } from '../../../shared/time.ts';

const note = { noteId: z.int().positive() };

export const noteWritten = defineEvent({
  type: 'NoteWritten',
  version: 1,
  doc: 'A note exists from now on.',
  schema: z.object({ ...note, text: z.string() }),
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
  schema: z.object({ ...note, text: z.string() }),
});

export const noteDiscarded = defineEvent({
  type: 'NoteDiscarded',
  version: 1,
  doc: 'A note is gone from the lists. What it said stays in the log.',
  schema: z.object(note),
  audit: ({ data }) => ({ action: 'note_discarded', target_type: 'note', target_id: data.noteId }),
});

export const noteEvents = [noteWritten, noteRevised, noteDiscarded];
