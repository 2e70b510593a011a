/** Old parts of the log, written to signed bundles. Stream: `archives`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const logArchived = defineEvent({
  type: 'LogArchived',
  doc: 'A part of the log was written to a signed bundle. The contents of its events may leave the database from then on.',
  schema: z.object({
    /** Name of the bundle's folder. */
    name: z.string(),
    /** Positions before the first event, and of the last. */
    after: z.int().nonnegative(),
    until: z.int().positive(),
    /** Of the tree over the log up to the last event, in base64. */
    root: z.string(),
    /** Hash of the file of events. */
    sha256: z.string(),
  }),
  audit: ({ data }) => ({
    action: 'log_archived',
    detail: { name: data.name, events: data.until - data.after, root: data.root, sha256: data.sha256 },
  }),
});
