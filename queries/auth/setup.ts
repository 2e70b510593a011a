/** First-run setup. */
import { usersProjection } from '../../projections/auth/users.ts';
import { type Reads, tables } from '../reads.ts';

/** Whether any user has ever existed; setup is for deployments without one. */
export async function wasSetUp(reads: Reads): Promise<boolean> {
  return (await tables(reads, usersProjection).selectFrom('first_user').select('one').executeTakeFirst()) !== undefined;
}
