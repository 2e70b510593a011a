/** Access requests by people who signed in with Google and are not approved users. Streams: `access_request-<id>`. */
import { z } from 'zod';
import { ROLES } from '../../identity.ts';
import { defineEvent } from '../define.ts';

export const accessRequestStream = (id: number): string => `access_request-${id}`;

const request = { request_id: z.int().positive() };
const person = (data: { readonly request_id: number }) => `access_request:${data.request_id}`;
/** Null once the person is erased. */
const personalText = z.string().nullable();

export const accessRequested = defineEvent({
  type: 'AccessRequested',
  doc: 'A person who is not an approved user signed in with Google. Each attempt is recorded and makes the request pending again.',
  schema: z.object({
    ...request,
    provider: z.enum(['google']),
    /** Lower case. */
    email: personalText,
    display_name: personalText,
    avatar_url: personalText,
    provider_id: personalText,
  }),
  personal: { fields: ['email', 'display_name', 'avatar_url', 'provider_id'], person },
  audit: ({ data }) => ({
    action: 'google_login_pending_approval',
    actor: data.email ?? '[erased]',
    actor_id: null,
    target: ['access_request', data.request_id],
    detail: { email: data.email, sub: data.provider_id },
  }),
});

export const accessRequestApproved = defineEvent({
  type: 'AccessRequestApproved',
  doc: 'An admin approved an access request. The user is created or updated right after this event.',
  schema: z.object({
    ...request,
    email: personalText,
    role: z.enum(ROLES),
    /** The existing user, or the id that the new one will get. */
    user_id: z.int().positive(),
    note: z.string().nullable(),
  }),
  personal: { fields: ['email'], person },
  audit: ({ data }) => ({
    action: 'access_request_approved',
    target: ['access_request', data.request_id],
    detail: { request_id: data.request_id, email: data.email, role: data.role, user_id: data.user_id, note: data.note },
  }),
});

export const accessRequestRejected = defineEvent({
  type: 'AccessRequestRejected',
  doc: 'An admin rejected an access request. An existing user stays unchanged.',
  schema: z.object({ ...request, email: personalText, note: z.string().nullable() }),
  personal: { fields: ['email'], person },
  audit: ({ data }) => ({
    action: 'access_request_rejected',
    target: ['access_request', data.request_id],
    detail: { request_id: data.request_id, email: data.email, note: data.note },
  }),
});
