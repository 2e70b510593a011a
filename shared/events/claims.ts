/** Events of unique names; the protocol is in `commands/claims.ts`. */
import { z } from 'zod';
import { defineEvent } from './define.ts';

export const nameClaimed = defineEvent({
  type: 'NameClaimed',
  doc: 'The owner of a stream claimed a unique name. Written before the event in the owner’s stream.',
  schema: z.object({ kind: z.string(), name: z.string(), owner: z.string() }),
});

export const nameReleased = defineEvent({
  type: 'NameReleased',
  doc: 'A unique name was released, because its owner was deleted or renamed.',
  schema: z.object({ kind: z.string(), name: z.string(), owner: z.string() }),
});

export const nameClaimVoided = defineEvent({
  type: 'NameClaimVoided',
  doc: 'An owner claimed a name but never used it. Written to the owner’s stream before another owner claims the name.',
  schema: z.object({ kind: z.string(), name: z.string() }),
});
