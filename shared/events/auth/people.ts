/**
 * Erasure of people, and reads of what is personal. Streams of the former: those of the records whose key was deleted,
 * `user-<id>` and `access_request-<id>`. They contain no name.
 */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

/** The record of the person. */
const record = { kind: z.enum(['user', 'access_request']), id: z.int().positive() };

export interface PersonRecord {
  readonly kind: 'user' | 'access_request';
  readonly id: number;
}

/** The name of the person's key: `user:7`. */
export const personOf = ({ kind, id }: PersonRecord): string => `${kind}:${id}`;

export const personErased = defineEvent({
  type: 'PersonErased',
  doc: 'The key of a person was deleted. Their personal fields can no longer be read in any event, and stores beside the log no longer contain them.',
  schema: z.object(record),
  audit: ({ data: { kind, id } }) => ({ action: 'person_erase', target: [kind, id] }),
});

export const auditEntriesErased = defineEvent({
  type: 'AuditEntriesErased',
  doc: 'Entries of the audit trail no longer show the personal fields of a person whose key was deleted. A read model that is built later never shows them.',
  schema: z.object({ ...record, ids: z.array(z.int().positive()) }),
});

/** In the stream `personal_reads-<workspace>`. */
export const personalFieldsRead = defineEvent({
  type: 'PersonalFieldsRead',
  doc: 'Personal fields of the log were read in clear. The event says which filter chose the events, and how many fields were readable.',
  schema: z.object({ filter: z.record(z.string(), z.string()), fields: z.int().positive() }),
  audit: ({ data: { filter, fields } }) => ({ action: 'personal_fields_read', detail: { filter, fields } }),
});

export const fieldRedacted = defineEvent({
  type: 'FieldRedacted',
  doc: 'The key of a personal field of one event was deleted: the field can no longer be read. Written to the stream of that event. The read models that contained the field are rebuilt afterwards.',
  schema: z.object({
    /** Id of the event. */
    event: z.uuid(),
    field: z.string().min(1),
  }),
  audit: ({ data: { event, field } }) => ({ action: 'field_redact', detail: { event, field } }),
});
