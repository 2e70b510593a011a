/** The current access requests. Their table belongs to the projection `users`. */
import { accessRequestSchema } from '../../shared/contract/auth/access-requests.ts';
import {
  accessRequestApproved,
  accessRequested,
  accessRequestRejected,
} from '../../shared/events/auth/access-requests.ts';
import { seconds } from '../../shared/time.ts';
import { columnsFor } from '../columns.ts';
import { change, defineTable, type Handler, on, update } from '../projection.ts';

export const accessRequestsTable = defineTable(
  'access_requests',
  {
    id: 'bigint',
    ...columnsFor(accessRequestSchema.pick({ provider: true })),
    email: 'text?',
    provider_id: 'text?',
    display_name: 'text?',
    avatar_url: 'text?',
    ...columnsFor(accessRequestSchema.pick({ status: true })),
    /** 1 while pending; pending requests come first in the list. */
    pending: 'int',
    requested_at: 'bigint',
    last_attempt_at: 'bigint',
    attempt_count: 'int',
    reviewed_by: 'text?',
    reviewed_at: 'bigint?',
    review_note: 'text?',
    approved_user_id: 'bigint?',
  },
  {
    key: ['id'],
    indexes: ['pending, last_attempt_at, id', 'status, last_attempt_at, id', 'email', 'provider_id'],
  },
);

/** The columns of personal fields after an erasure. */
export const ERASED = { email: null, provider_id: null, display_name: null, avatar_url: null } as const;

export const accessRequestHandlers: readonly Handler[] = [
  on(accessRequested, ({ data: { request_id: id, ...fields }, meta }) => {
    const at = seconds(meta.at);
    return [
      change(accessRequestsTable, { id }, (row) => ({
        id,
        ...fields,
        status: 'pending',
        pending: 1,
        requested_at: row?.requested_at ?? at,
        last_attempt_at: at,
        attempt_count: (row?.attempt_count ?? 0) + 1,
        reviewed_by: row?.reviewed_by ?? null,
        reviewed_at: row?.reviewed_at ?? null,
        review_note: row?.review_note ?? null,
        approved_user_id: row?.approved_user_id ?? null,
      })),
    ];
  }),
  on(accessRequestApproved, ({ data, meta }) => [
    update(accessRequestsTable, { id: data.request_id }, (row) => ({
      ...row,
      status: 'approved',
      pending: 0,
      reviewed_by: meta.actor.name,
      reviewed_at: seconds(meta.at),
      review_note: data.note,
      approved_user_id: data.user_id,
    })),
  ]),
  on(accessRequestRejected, ({ data, meta }) => [
    update(accessRequestsTable, { id: data.request_id }, (row) => ({
      ...row,
      status: 'rejected',
      pending: 0,
      reviewed_by: meta.actor.name,
      reviewed_at: seconds(meta.at),
      review_note: data.note,
    })),
  ]),
];
