/**
 * The only file in which old versions of events are upcast.
 *
 * `upcasters.<type>[n]` turns data of version n into data of version n + 1; the actor of the event may matter. The step
 * from camelCase to the names of the interface is the same for all types: `field-names.ts`. The golden files of the old
 * version stay in `test/golden/events`, and the tests read them through these upcasters.
 */
import type { EventDefinition } from './define.ts';
import { renamed } from './field-names.ts';
import type { Actor } from './metadata.ts';

type Data = Readonly<Record<string, unknown>>;
type By = { readonly actor: Actor };

export type Upcasters = Readonly<Record<string, Readonly<Record<number, (data: Data, meta: By) => Data>>>>;

/**
 * Version 1 named the author of a task, a comment and so on by the display name. Since version 2 it is the username,
 * which other events also use, and display names are looked up where they are shown.
 */
const username = (name: unknown, { actor }: By): unknown => (actor.type === 'user' ? actor.name : name);
const namedByUsername = (field: string) => (data: Data, meta: By) => ({
  ...data,
  [field]: username(data[field], meta),
});
/** Unchanged: the schema drops fields that are no longer part of an event, such as the name of a task's project. */
const asItWas = (data: Data): Data => data;

export const upcasters: Upcasters = {
  // Decisions were recorded after the gateway had accepted them; since version 2, before it is asked.
  ExecApprovalDecided: { 1: (data) => ({ ...data, taken: true }) },
  TaskCreated: {
    1(data, meta) {
      const task = data.task as Data;
      if (data.source === 'recurrence') return data;
      return { ...data, task: { ...task, createdBy: username(task.createdBy, meta) } };
    },
    2: asItWas,
  },
  TaskUpdated: {
    // The creator of a task is known from its first event.
    1: asItWas,
    2(data) {
      const [before, task] = [data.before as Data, data.task as Data];
      if (before.projectId === task.projectId) return data;
      return { ...data, moved: { from: before.projectName, to: task.projectName } };
    },
  },
  TaskMoved: { 1: asItWas },
  TaskCommented: { 1: namedByUsername('author') },
  TaskBroadcast: { 1: namedByUsername('author') },
  TaskAssigned: { 1: namedByUsername('by') },
  // A display name among the names is that of the comment's author.
  TaskSubscribed: { 1: (data) => ({ ...data, names: Array.isArray(data.names) ? data.names : [] }) },
  // A user may have written as the coordinator, so the name is not always the user's.
  ChatMessageSent: { 1: asItWas },
  NotificationRaised: { 1: (data) => ({ ...data, by: null }) },
  NotificationForwarded: { 1: asItWas },
  // Webhooks have had several formats since version 2.
  WebhookCreated: { 1: (data) => ({ ...data, format: 'json' }) },
  WebhookUpdated: { 1: asItWas },
};

/** Upcasts `data` from version `from` to the newest. @throws Error when a step is missing */
export function upcast(
  definition: Pick<EventDefinition, 'type' | 'version' | 'schema'>,
  data: Data,
  meta: By,
  from: number,
  steps = upcasters,
): Data {
  const { type, version: newest } = definition;
  let current = data;
  for (let version = from; version < newest; version++) {
    const step = steps[type]?.[version] ?? renamed(definition, version);
    if (!step) throw new Error(`there is no upcaster for ${type} from version ${version} to ${version + 1}`);
    current = step(current, meta);
  }
  return current;
}
