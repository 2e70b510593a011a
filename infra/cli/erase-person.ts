/** `signalbox erase-person`: deletes a user and the key that seals their personal fields. */
import { type Command, InvalidArgumentError } from 'commander';
import { erasePerson } from '../../commands/auth/people.ts';
import { peopleDirectory } from '../../queries/auth/people.ts';
import { adminsIn } from '../../queries/auth/users.ts';
import { personParams } from '../../shared/contract/auth/people.ts';
import { atHead } from '../../shared/ports/read-models.ts';
import { cliContext, counted, withCore } from './with-core.ts';

function idOf(value: string): number {
  if (!/^[1-9]\d{0,15}$/.test(value)) throw new InvalidArgumentError('It must be the id of a user (a whole number).');
  return Number(value);
}

export function addErasePerson(program: Command): void {
  program
    .command('erase-person')
    .description(
      'delete a user and the key that seals their personal fields in the log, for good; a command that was cut off is to be repeated',
    )
    .argument('<username>', 'name of the user, who may have been deleted')
    .option('--id <id>', 'id of the user, if several who were deleted had this name', idOf)
    .action(async (name: string, { id }: { readonly id?: number }) => {
      const { username } = personParams.parse({ username: name });
      const { userId, accessRequestIds } = await withCore(
        ({ commands, credentials, personRecords, reads }) => {
          const readsNow = () => reads.at(atHead());
          const people = peopleDirectory(readsNow);
          return erasePerson(
            {
              ...{ commands, credentials, people, records: personRecords },
              admins: (tenant) => adminsIn(readsNow())(tenant),
            },
            cliContext(),
            { username, userId: id, reach: 'all', callerId: 0 },
          );
        },
        { project: true },
      );
      const requests =
        accessRequestIds.length === 0 ? '' : `, with ${counted(accessRequestIds.length, 'access request')}`;
      console.log(`Erased the person behind the user ${userId}${requests}.`);
      console.log('Backups made before still have their key: delete those. Texts that people wrote are not changed.');
    });
}
