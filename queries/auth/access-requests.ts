/** Access requests, and the lookup of a Google account's request. */
import type { accessRequestsTable } from '../../projections/auth/access-requests.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import type { Row } from '../../projections/projection.ts';
import { type AccessRequestRecord, accessRequestSchema } from '../../shared/contract/auth/access-requests.ts';
import { fieldNames } from '../../shared/fields.ts';
import { type Reads, tables } from '../reads.ts';
import { columnsOf } from '../records.ts';

export type AccessRequestRow = Row<typeof accessRequestsTable>;

const own = (reads: Reads) => tables(reads, usersProjection);

const FIELDS = fieldNames(
  accessRequestSchema.omit({ username: true, email: true, reason: true, created_at: true, provider_user_id: true }),
);

const toAccessRequestRecord = (row: AccessRequestRow): AccessRequestRecord => {
  const email = row.email ?? '[erased]';
  return {
    ...columnsOf(row, FIELDS),
    username: row.display_name ?? email.split('@')[0] ?? email,
    email,
    reason: null,
    created_at: row.requested_at,
    provider_user_id: row.provider_id,
  };
};

/** Pending ones first, then by the last attempt. @param status exact; undefined for all */
export async function listAccessRequests(
  reads: Reads,
  filter: { readonly status: string | undefined; readonly limit: number; readonly offset: number },
): Promise<AccessRequestRecord[]> {
  let page = own(reads).selectFrom('access_requests').selectAll();
  if (filter.status !== undefined) page = page.where('status', '=', filter.status as AccessRequestRecord['status']);
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
