/** `signalbox erase-person`: deletes a user and the key that seals their personal fields, or the key of a single field. */
import { type Command, InvalidArgumentError } from 'commander';
import { chooseField, erasePerson, redactField } from '../../commands/auth/people.ts';
import { projections } from '../../projections/index.ts';
import { peopleDirectory } from '../../queries/auth/people.ts';
import { adminsIn } from '../../queries/auth/users.ts';
import { personParams } from '../../shared/contract/auth/people.ts';
import { notFound } from '../../shared/errors.ts';
import { atHead } from '../../shared/ports/read-models.ts';
import type { Core } from '../core.ts';
import { currentIndex } from '../log-index/current.ts';
import { rebuildProjections } from '../read-models/rebuild/rebuild.ts';
import { beginningOfPast } from '../read-models/retention.ts';
import { type Watched, withProgress } from './progress.ts';
import { cliContext, counted, withCore } from './with-core.ts';

interface Options {
  readonly id?: number;
  readonly redact?: string;
  readonly field?: string;
}

function idOf(value: string): number {
  if (!/^[1-9]\d{0,15}$/.test(value)) throw new InvalidArgumentError('It must be the id of a user (a whole number).');
  return Number(value);
}

export function addErasePerson(program: Command): void {
  program
    .command('erase-person')
    .description(
      'delete a user and, for good, the key that seals the personal fields of the person, or with --redact that of one field; if interrupted, run it again',
    )
    .argument('[username]', 'name of the user, who may have been deleted')
    .option('--id <id>', 'id of the user, if several who were deleted had this name', idOf)
    .option('--redact <event>', 'instead of a person, erase one personal field of the event with this id')
    .option('--field <name>', 'with --redact: the field, if the event has several')
    .action(async (username: string | undefined, options: Options) => {
      const { id, redact, field } = options;
      if ((username === undefined) === (redact === undefined))
        throw new Error('Name either a user or, with --redact, an event.');
      if (redact === undefined && field !== undefined) throw new Error('--field needs --redact.');
      if (redact !== undefined && id !== undefined) throw new Error('--id is the id of a user; --redact takes none.');
      if (username !== undefined) await erase(username, id);
      else if (redact !== undefined) await redactOne(redact, field);
    });
}

async function erase(name: string, id: number | undefined): Promise<void> {
  const { username } = personParams.parse({ username: name });
  const { userId, accessRequestIds } = await withCore(
    ({ commands, credentials, personRecords, reads }) => {
      const readsNow = () => reads.at(atHead());
      const people = peopleDirectory(readsNow);
      return erasePerson(
        {
          commands,
          credentials,
          people,
          records: personRecords,
          admins: (tenant) => adminsIn(readsNow())(tenant),
        },
        cliContext(),
        { username, userId: id, reach: 'all', callerId: 0 },
      );
    },
    { project: true },
  );
  const requests = accessRequestIds.length === 0 ? '' : `, with ${counted(accessRequestIds.length, 'access request')}`;
  console.log(`Erased the person behind the user ${userId}${requests}.`);
  console.log('Backups made before still have their key: delete those. Texts that people wrote are not changed.');
}

async function redactOne(eventId: string, named: string | undefined): Promise<void> {
  const { result } = await withProgress('Interrupted; run the command again to finish.', (watched) =>
    withCore((core) => redactIn(core, eventId, named, watched), { project: true }),
  );
  const { field, rebuilt } = result;
  console.log(`Erased the field ${field} of the event ${eventId}. Rebuilt: ${rebuilt.join(', ')}.`);
  console.log('Backups made before still have its key: delete those.');
}

async function redactIn(core: Core, eventId: string, named: string | undefined, watched: Watched) {
  const index = await currentIndex(core);
  const entry = await index.find(eventId);
  const [event] = entry ? await index.read([entry]) : [];
  if (!event) throw notFound('Event');
  const field = chooseField(event, named);
  const readers = projections.filter(({ handles }) => handles.has(event.type));
  const historyFrom = await beginningOfPast(index, core.config.retainHistoryDays);
  await redactField(
    {
      commands: core.commands,
      records: core.personRecords,
      // From the beginning, because the tables of an interrupted rebuild may contain the field.
      rebuild: async () => {
        await rebuildProjections(core, readers, { fresh: true, history: true, historyFrom, ...watched });
      },
    },
    cliContext(),
    event,
    field,
  );
  return { field, rebuilt: readers.map(({ name }) => name) };
}
