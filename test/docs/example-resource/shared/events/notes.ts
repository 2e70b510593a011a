/** Everything that happens to notes. Stream: `note-<workspace>-<id>`. */
import { z } from 'zod';
import { defineEvent } from '../../../../../shared/events/define.ts';
import { seconds } from '../../../../../shared/time.ts';

const note_id = z.int().positive();

/** What a note says. */
export const noteFields = z.object({ text: z.string() });

export const noteWritten = defineEvent({
  type: 'NoteWritten',
  doc: 'A note exists from now on.',
  schema: noteFields.extend({ note_id }),
  activity: ({ data, meta }) => ({
    type: 'note_written',
    entity_type: 'note',
    entity_id: data.note_id,
    description: `${meta.actor.name} wrote a note`,
  }),
  frames: ({ data, meta }) => [
    { type: 'note.created', data: { id: data.note_id, text: data.text, created_at: seconds(meta.at) } },
  ],
});

export const noteRevised = defineEvent({
  type: 'NoteRevised',
  doc: 'The text of a note was replaced.',
  schema: noteFields.extend({ note_id }),
});

export const noteDiscarded = defineEvent({
  type: 'NoteDiscarded',
  doc: 'A note is gone from the lists. What it said stays in the log.',
  schema: z.object({ note_id }),
  audit: ({ data }) => ({ action: 'note_discarded', target: ['note', data.note_id] }),
});
