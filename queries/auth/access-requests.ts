/** Access requests, and finding the one of a Google account. */
import type { accessRequestsTable } from '../../projections/auth/access-requests.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import type { Row } from '../../projections/projection.ts';
import type { AccessRequestRecord } from '../../shared/contract/auth/access-requests.ts';
import { type Reads, tables } from '../reads.ts';

export type AccessRequestRow = Row<typeof accessRequestsTable>;

const own = (reads: Reads) => tables(reads, usersProjection);

const toAccessRequestRecord = (row: AccessRequestRow): AccessRequestRecord => {
  const email = row.email ?? '[erased]';
  return {
    id: row.id,
    username: row.display_name ?? email.split('@')[0] ?? email,
    email,
    reason: null,
    status: row.status as AccessRequestRecord['status'],
    created_at: row.requested_at,
    provider: 'google',
    provider_user_id: row.provider_id,
    display_name: row.display_name,
    avatar_url: row.avatar_url,
    requested_at: row.requested_at,
    last_attempt_at: row.last_attempt_at,
    attempt_count: row.attempt_count,
    reviewed_by: row.reviewed_by,
    reviewed_at: row.reviewed_at,
    review_note: row.review_note,
    approved_user_id: row.approved_user_id,
  };
};

/** Pending ones first, then by the last attempt. @param status exact; undefined for all */
export async function listAccessRequests(
  reads: Reads,
  filter: { readonly status: string | undefined; readonly limit: number; readonly offset: number },
): Promise<AccessRequestRecord[]> {
  let page = own(reads).selectFrom('access_requests').selectAll();
  if (filter.status !== undefined) page = page.where('status', '=', filter.status);
  else page = page.orderBy('pending', 'desc');
  const rows = await page
    .orderBy('last_attempt_at', 'desc')
    .orderBy('id', 'desc')
    .limit(filter.limit)
    .offset(filter.offset)
    .execute();
  return rows.map(toAccessRequestRecord);
}

/** The earlier request of this account or its e-mail address. */
export async function findAccessRequestOf(reads: Reads, sub: string, email: string): Promise<number | undefined> {
  const requests = own(reads).selectFrom('access_requests').select('id').orderBy('id');
  const found =
    (await requests.where('email', '=', email).executeTakeFirst()) ??
    (await requests.where('provider_id', '=', sub).executeTakeFirst());
  return found?.id;
}
