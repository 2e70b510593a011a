/**
 * Erasure of a person: the key that seals their personal fields is deleted. The log keeps the fields, unreadable.
 *
 * A user who still exists is deleted first. Then each record of the person is erased, the user last: the key is
 * deleted, audit entries lose the fields, and an event records the erasure. If the process dies in between, the user is
 * deleted but not erased; the same request finds that user again and resumes.
 *
 * A single personal field of an event has a key of its own, which can be deleted alone. Read models cannot know from
 * which event each of their rows has the field, so the read models of such events are rebuilt from the log.
 */
import type { AuditPlace, FoundPerson, PeopleDirectory } from '../../queries/auth/people.ts';
import { conflict, forbidden, invalid, notFound } from '../../shared/errors.ts';
import { isOfPerson, isSealed } from '../../shared/event-store/sealed-values.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { accessRequestStream } from '../../shared/events/auth/access-requests.ts';
import {
  auditEntriesErased,
  fieldRedacted,
  type PersonRecord,
  personalFieldsRead,
  personErased,
  personOf,
} from '../../shared/events/auth/people.ts';
import { userStream } from '../../shared/events/auth/users.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { DEFAULT_TENANT } from '../../shared/events/metadata.ts';
import type { PersonRecords } from '../../shared/ports/auth/people.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import type { LoggedEvent } from '../../shared/ports/event-log.ts';
import type { Decider } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { accessRequestDecider } from './access-requests.ts';
import { deleteUser } from './changes.ts';
import type { AdminsOf } from './last-admin.ts';
import { inWorkspace, type Reach, type UserState, userDecider } from './users.ts';

export interface Erasing {
  readonly commands: Commands;
  readonly credentials: Credentials;
  readonly admins: AdminsOf;
  readonly people: PeopleDirectory;
  readonly records: Pick<PersonRecords, 'erase' | 'forget'>;
}

export interface ErasureRequest {
  readonly username: string;
  /** Selects one of several users with this name; undefined: the current one, or the only deleted one. */
  readonly userId: number | undefined;
  readonly reach: Exclude<Reach, number>;
  /** The caller's own user id; 0 unless the caller is a user. */
  readonly callerId: number;
}

export interface Erased {
  readonly userId: number;
  readonly accessRequestIds: readonly number[];
}

/** @throws AppError 404, 409 when several people had this name */
export function choosePerson(
  found: readonly FoundPerson[],
  { userId, reach, username }: Pick<ErasureRequest, 'userId' | 'reach' | 'username'>,
): FoundPerson {
  const within = found.filter(({ tenant }) => reach === 'all' || reach.tenant === tenant);
  const present = within.filter(({ deleted }) => !deleted);
  const candidates =
    userId !== undefined ? within.filter(({ id }) => id === userId) : present.length > 0 ? present : within;
  const [one, ...others] = candidates;
  if (!one) throw notFound('Person');
  if (others.length === 0) return one;
  const ids = candidates.map(({ id }) => id).join(', ');
  throw conflict(`Several people had the username "${username}", with the ids ${ids}: name one of them by id.`, {
    code: 'SEVERAL_PEOPLE',
  });
}

/** @throws AppError 403 for a person who has been in other tenants */
export function checkTenants({ tenants }: Pick<UserState, 'tenants'>, reach: ErasureRequest['reach']): void {
  if (reach === 'all' || tenants.every((tenant) => tenant === reach.tenant)) return;
  throw forbidden('This person has been in other tenants as well: only admins of the default tenant can erase them.');
}

/** No event for a person who is already erased. */
export const decideErasure = (state: { readonly erased: boolean }, record: PersonRecord): readonly EventDraft[] =>
  state.erased ? [] : [personErased.draft(record)];

/**
 * Deletes a user, if the user still exists, and erases the person.
 *
 * @throws AppError 400 for the caller's own account, 403, 404, 409 for the last admin or an ambiguous name
 */
export async function erasePerson(erasing: Erasing, context: CommandContext, request: ErasureRequest): Promise<Erased> {
  const { commands, credentials, admins, people } = erasing;
  const { username, reach, callerId } = request;
  const { id: userId, workspace, tenant } = choosePerson(await people.named(username), request);
  const stream = userStream(userId);
  const { state } = await commands.load(userDecider, stream);
  checkTenants(state, reach);
  const there = inWorkspace(context, { tenant, workspace });
  if (state.exists) await deleteUser(commands, there, credentials, admins, { user_id: userId, reach, callerId });
  // Also removes what an earlier, interrupted call did not reach.
  await credentials.removeSessions(userId);
  await credentials.removePasswords(userId);
  const accessRequestIds = await people.requestsOf(userId, state.email, state.provider_id);
  // Access requests are made to the default tenant.
  const shownIn = accessRequestIds.length > 0 ? [...state.tenants, DEFAULT_TENANT] : state.tenants;
  const workspaces = await people.workspacesOf(shownIn);
  // Before the user is erased, because the user's address leads to the requests.
  for (const id of accessRequestIds)
    await eraseRecord(erasing, there, accessRequestDecider, {
      record: { kind: 'access_request', id },
      stream: accessRequestStream(id),
      username: null,
      workspaces,
    });
  await eraseRecord(erasing, there, userDecider, {
    record: { kind: 'user', id: userId },
    stream,
    username,
    workspaces,
  });
  return { userId, accessRequestIds };
}

/**
 * The personal field of an event to redact: the only one, or the one that is named.
 *
 * @throws AppError 400
 */
export function chooseField(event: LoggedEvent, named: string | undefined): string {
  const { id, type, data } = event;
  const fields = (catalogue.get(type)?.personal?.fields ?? []).filter((name) => {
    const value = data[name];
    return isSealed(value) && isOfPerson(value);
  });
  if (fields.length === 0) throw invalid(`The event ${id} (${type}) has no personal field.`);
  const field = named ?? (fields.length === 1 ? fields[0] : undefined);
  if (field === undefined || !fields.includes(field))
    throw invalid(`Name the field of the event ${id} (${type}): it has the personal fields ${fields.join(', ')}.`);
  return field;
}

/**
 * Reads events with their personal fields in clear, and records that before the caller gets them.
 *
 * @param filter what chose the events
 * @param read gets the store that opens the fields
 */
export async function readPersonal<T>(
  commands: Pick<Commands, 'record'>,
  context: CommandContext,
  store: Pick<EventStore, 'reveal'>,
  filter: Readonly<Record<string, string>>,
  read: (store: Pick<EventStore, 'reveal'>) => Promise<T>,
): Promise<T> {
  let fields = 0;
  const reveal: EventStore['reveal'] = async (event) => {
    const revealed = await store.reveal(event);
    fields += revealed.opened;
    return revealed;
  };
  try {
    return await read({ reveal });
  } finally {
    // Also after a failure: a part of them may have left the service.
    if (fields > 0)
      await commands.record(`personal_reads-${context.origin.workspace}`, context, [
        personalFieldsRead.draft({ filter, fields }),
      ]);
  }
}

export interface Redacting {
  readonly commands: Pick<Commands, 'record'>;
  readonly records: Pick<PersonRecords, 'textOf' | 'redact'>;
  /** Rebuilds the read models that read events of a type, with their history. */
  readonly rebuild: (type: string) => Promise<void>;
}

/** Erases one personal field of one event. An interrupted call must be repeated. @param field see `chooseField` */
export async function redactField(
  { commands, records, rebuild }: Redacting,
  context: CommandContext,
  event: LoggedEvent,
  field: string,
): Promise<void> {
  const text = await records.textOf(event, field);
  await records.redact(event, field, text);
  await commands.record(event.stream, context, [fieldRedacted.draft({ event: event.id, field })]);
  await rebuild(event.type);
  // Only now: until the rebuild, new webhook payloads could take the field from the read models.
  await records.redact(event, field, text);
}

async function eraseRecord<State extends { readonly erased: boolean }>(
  { commands, people, records }: Erasing,
  context: CommandContext,
  decider: Decider<State>,
  erased: {
    readonly record: PersonRecord;
    readonly stream: string;
    readonly username: string | null;
    readonly workspaces: readonly number[];
  },
): Promise<void> {
  const { record, stream, username, workspaces } = erased;
  const person = personOf(record);
  const texts = await records.erase(person, stream, username, workspaces);
  const eraseEntries = async () => {
    for (;;) {
      const found = await people.auditEntriesOf(person);
      if (found.length === 0) return;
      // Recorded in the workspace of the entries, because its lists change.
      for (const [workspace, ids] of byWorkspace(found))
        await commands.record(stream, inWorkspace(context, { tenant: context.origin.tenant, workspace }), [
          auditEntriesErased.draft({ ...record, ids }),
        ]);
    }
  };
  await eraseEntries();
  await commands.execute(decider, stream, context, (state) => decideErasure(state, record));
  // A process that still had the key may have recorded a request in flight.
  await eraseEntries();
  await records.forget(texts, username, workspaces);
}

function byWorkspace(entries: readonly AuditPlace[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const { workspace, id } of entries) found.set(workspace, [...(found.get(workspace) ?? []), id]);
  return found;
}
