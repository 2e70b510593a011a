/** First-run setup. */
import { usersProjection } from '../../projections/auth/users.ts';
import { type Reads, tables } from '../reads.ts';

/** Whether there has ever been a user; setup is for deployments without one. */
export async function wasSetUp(reads: Reads): Promise<boolean> {
  return (await tables(reads, usersProjection).selectFrom('first_user').select('one').executeTakeFirst()) !== undefined;
}
