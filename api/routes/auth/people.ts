/** The erasure of people. */
import { erasePerson } from '../../../commands/auth/people.ts';
import { adminsIn } from '../../../queries/auth/users.ts';
import { erasedResponse, personParams, personQuery } from '../../../shared/contract/auth/people.ts';
import { defineRoute } from '../../http/route.ts';

export const peopleRoute = defineRoute({
  method: 'delete',
  path: '/api/people/{username}',
  summary: 'Erase a person',
  description:
    'Deletes the user, unless that has happened, and the key that seals the personal fields of the person in the log: display names, e-mail and client addresses, picture and Google account. No response, stream, export or backup made afterwards has them; the log and its proofs stay as they are. The username and texts that people wrote stay. It cannot be undone. Admins of the default tenant can erase every person, other admins people who have only been in their own tenant, those of a strictly isolated workspace only users of that workspace. Callers cannot erase themselves, nor the last enabled admin of a tenant. A call that was cut off is to be repeated.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'partly', past: 'none', prompts: 'none' },
  limit: 'users',
  params: personParams,
  query: personQuery,
  refuses: [404, 409],
  responses: { 200: { description: 'Erased', schema: erasedResponse } },
  async respond({ params, query, services, identity, command, checkShared, isOfDeployment }) {
    const { commands, credentials, people, personRecords, reads } = services;
    const { username } = params;
    const isHere = (await people.named(username)).some(({ workspace }) => workspace === identity.workspace);
    if (!isHere) await checkShared('users');
    const { userId, accessRequestIds } = await erasePerson(
      { commands, credentials, admins: adminsIn(reads), people, records: personRecords },
      command,
      {
        username,
        userId: query.id,
        reach: (await isOfDeployment()) ? 'all' : { tenant: identity.tenant },
        callerId: identity.kind === 'user' ? identity.id : 0,
      },
    );
    return { success: true as const, user_id: userId, access_request_ids: [...accessRequestIds] };
  },
});
