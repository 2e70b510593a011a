/** An event type for tests of the event store, with a personal field, and one with values from clients. */
import { z } from 'zod';
import { defineEvent, type EventDefinition } from '../../shared/events/define.ts';

export const joined = defineEvent({
  type: 'Joined',
  version: 2,
  doc: 'test',
  schema: z.object({
    id: z.int(),
    email: z.string().nullable(),
    city: z.string().optional(),
    config: z.unknown().optional(),
  }),
  personal: { fields: ['email'], person: (data) => `user:${data.id}` },
}) as unknown as EventDefinition;
