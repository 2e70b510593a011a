/** Access requests by people who signed in with Google and are not approved users. Streams: `access_request-<id>`. */
import { z } from 'zod';
import { ROLES } from '../../identity.ts';
import { defineEvent } from '../define.ts';

export const accessRequestStream = (id: number): string => `access_request-${id}`;

const request = { requestId: z.int().positive() };
const person = (data: { readonly requestId: number }) => `access_request:${data.requestId}`;
/** Null once the person is erased. */
const personalText = z.string().nullable();

export const accessRequested = defineEvent({
  type: 'AccessRequested',
  version: 1,
  doc: 'Somebody who is not an approved user signed in with Google. Each attempt is recorded and makes the request pending again.',
  schema: z.object({
    ...request,
    provider: z.enum(['google']),
    /** Lower case. */
    email: personalText,
    displayName: personalText,
    avatarUrl: personalText,
    providerId: personalText,
  }),
  personal: { fields: ['email', 'displayName', 'avatarUrl', 'providerId'], person },
  audit: ({ data }) => ({
    action: 'google_login_pending_approval',
    actor: data.email ?? '[erased]',
    actor_id: null,
    target_type: 'access_request',
    target_id: data.requestId,
    detail: { email: data.email, sub: data.providerId },
  }),
});

export const accessRequestApproved = defineEvent({
  type: 'AccessRequestApproved',
  version: 1,
  doc: 'An admin approved an access request. The user is created or updated right after this event.',
  schema: z.object({
    ...request,
    email: personalText,
    role: z.enum(ROLES),
    /** The existing user, or the id that the new one will get. */
    userId: z.int().positive(),
    note: z.string().nullable(),
  }),
  personal: { fields: ['email'], person },
  audit: ({ data }) => ({
    action: 'access_request_approved',
    target_type: 'access_request',
    target_id: data.requestId,
    detail: {
      request_id: data.requestId,
      email: data.email,
      role: data.role,
      user_id: data.userId,
      note: data.note,
    },
  }),
});

export const accessRequestRejected = defineEvent({
  type: 'AccessRequestRejected',
  version: 1,
  doc: 'An admin rejected an access request. An existing user stays unchanged.',
  schema: z.object({ ...request, email: personalText, note: z.string().nullable() }),
  personal: { fields: ['email'], person },
  audit: ({ data }) => ({
    action: 'access_request_rejected',
    target_type: 'access_request',
    target_id: data.requestId,
    detail: { request_id: data.requestId, email: data.email, note: data.note },
  }),
});

export const accessRequestEvents = [accessRequested, accessRequestApproved, accessRequestRejected];
