/**
 * Which webhooks new events concern. The worker examines each event of the log once for all webhooks of its workspace;
 * without webhooks this costs a look-up in a map.
 *
 * Nothing is stored: the events that a webhook has not received are in the log after its own position, and every worker
 * examines all events. A worker that starts treats every webhook as concerned by the events before.
 */
import { EventUnreadableError, UnknownPositionError } from '../../../shared/errors.ts';
import type { EventStore } from '../../../shared/event-store.ts';
import { settingReset, settingsUpdated } from '../../../shared/events/admin/settings.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import type { EventOf } from '../../../shared/events/define.ts';
import { MESSAGE_EVENTS, messagesOf } from '../../../shared/events/webhooks/messages.ts';
import {
  webhookCreated,
  webhookDeleted,
  webhookTripped,
  webhookUpdated,
} from '../../../shared/events/webhooks/webhooks.ts';
import type { LoggedEvent, Position } from '../../../shared/ports/event-log.ts';
import type { Wanted, WebhookQueue } from '../../../shared/ports/webhooks/queue.ts';
import type { LogCache } from './log-cache.ts';

/** Approximate number of events after which a webhook moves up, even if it subscribes to none of them. */
const FAR_EVENTS = 5_000;

const typesOf = (...definitions: readonly { readonly type: string }[]): ReadonlySet<string> =>
  new Set(definitions.map(({ type }) => type));
const OWN_EVENTS = typesOf(webhookCreated, webhookUpdated, webhookTripped, webhookDeleted);
/** They may switch retries on. */
const SETTING_EVENTS = typesOf(settingsUpdated, settingReset);

/** The read models that `SubscribersParts.all` reads listen to these. */
export const WEBHOOK_EVENTS: readonly string[] = [...OWN_EVENTS];

export interface SubscribersParts {
  readonly log: LogCache;
  readonly decode: EventStore['decode'];
  readonly queue: Pick<WebhookQueue, 'register' | 'recall'>;
  /** The end of the log, and every webhook of the deployment at that position. */
  readonly current: () => Promise<{
    readonly position: Position;
    readonly webhooks: readonly {
      readonly workspace: number;
      readonly id: number;
      readonly events: readonly string[];
    }[];
  }>;
  /** Difference between the positions of two events that follow one another. */
  readonly stride: number;
  /** Whether no other process delivers. */
  readonly alone: boolean;
}

export interface Subscribers {
  /** Webhooks with events that may be undelivered, and the position of the last of these events. */
  readonly wanted: Wanted;
  /** Everything up to here has been examined; undefined: before the first call of `examine`. */
  readonly position: Position | undefined;
  /** False: there is no webhook. */
  readonly any: boolean;
  /** Whether an event may concern a webhook. Needs no data of the event. */
  mayConcern(event: Pick<LoggedEvent, 'type' | 'meta'>): boolean;
  /** Examines a page of new events. @returns false at the end of the log */
  examine(): Promise<boolean>;
  /** Removes webhooks from `wanted` that are not wanted beyond these positions. */
  seen(webhooks: Wanted): void;
}

/** A webhook that may have undelivered events. */
interface Subscriber {
  /** Event types to which it subscribes; ended subscriptions stay. */
  readonly chosen: Set<string>;
  /** Its last position in `wanted`. */
  wanted: Position;
}

export function createSubscribers({ log, decode, queue, current, stride, alone }: SubscribersParts): Subscribers {
  const wanted = new Map<number, Position>();
  /** By workspace, then by id. */
  const subscribers = new Map<number, Map<number, Subscriber>>();
  /** Everything up to here has been examined. */
  let position: Position | undefined;
  // At the beginning; later this process may hold claims itself.
  let first = alone;

  function learn(workspace: number, id: number, events: readonly string[], at: Position): void {
    const all = subscribers.get(workspace) ?? new Map<number, Subscriber>();
    const one = all.get(id) ?? { chosen: new Set(), wanted: at };
    for (const type of events) one.chosen.add(type);
    subscribers.set(workspace, all.set(id, one));
  }

  async function begin(): Promise<void> {
    const { position: head, webhooks } = await current();
    await queue.register(webhooks, head, first);
    first = false;
    log.forget();
    subscribers.clear();
    wanted.clear();
    for (const { workspace, id, events } of webhooks) {
      learn(workspace, id, events, head);
      wanted.set(id, head);
    }
    position = head;
  }

  /** The types of an event's messages; undefined for an unreadable event: the delivery skips and reports it. */
  async function messageTypes(logged: LoggedEvent): Promise<readonly string[] | undefined> {
    const definition = catalogue.get(logged.type);
    if (!definition) return [];
    try {
      return messagesOf(definition, await decode(logged)).map(({ type }) => type);
    } catch (error) {
      if (error instanceof EventUnreadableError) return undefined;
      throw error;
    }
  }

  /** Adds the webhooks of a workspace that an event concerns. */
  async function addConcerned(logged: LoggedEvent, concerned: Map<number, Subscriber>): Promise<void> {
    const all = subscribers.get(logged.meta.workspace as number);
    const open = [...(all ?? [])].filter(([id]) => !concerned.has(id));
    // Webhooks that subscribe to rare events must not have to read the whole log when one happens.
    const isFar = (one: Subscriber) => logged.position - one.wanted > FAR_EVENTS * stride;
    const others = open.filter(([id, one]) => {
      const any = one.chosen.has('*') || isFar(one);
      if (any) concerned.set(id, one);
      return !any;
    });
    if (others.length === 0) return;
    const types = await messageTypes(logged);
    for (const [id, one] of others) if (!types || types.some((type) => one.chosen.has(type))) concerned.set(id, one);
  }

  /** An event of a webhook: what changed is checked by its delivery. */
  async function addChanged(logged: LoggedEvent, concerned: Map<number, Subscriber>): Promise<void> {
    const workspace = logged.meta.workspace as number;
    const { data } = (await decode(logged)) as EventOf<typeof webhookUpdated>;
    const id = data.webhook_id;
    // A process that died between the event and the registration has left that out.
    if (logged.type === webhookCreated.type) await queue.register([{ workspace, id }], logged.position, false);
    learn(workspace, id, data.events ?? [], logged.position);
    const all = subscribers.get(workspace);
    concerned.set(id, all?.get(id) as Subscriber);
    if (logged.type === webhookDeleted.type) all?.delete(id);
    if (all?.size === 0) subscribers.delete(workspace);
  }

  return {
    wanted,
    get position() {
      return position;
    },
    get any() {
      return subscribers.size > 0 || wanted.size > 0;
    },
    mayConcern: ({ type, meta }) =>
      position === undefined ||
      OWN_EVENTS.has(type) ||
      (subscribers.size > 0 && SETTING_EVENTS.has(type)) ||
      (MESSAGE_EVENTS.has(type) && subscribers.has(meta.workspace as number)),
    async examine() {
      if (position === undefined) await begin();
      let page: readonly LoggedEvent[];
      try {
        page = await log.after(position as Position);
      } catch (error) {
        // The log has been replaced, for example by a restored backup.
        if (error instanceof UnknownPositionError) position = undefined;
        throw error;
      }
      const last = page.at(-1)?.position;
      if (last === undefined) return false;
      const concerned = new Map<number, Subscriber>();
      for (const logged of page) {
        if (OWN_EVENTS.has(logged.type)) await addChanged(logged, concerned);
        else if (SETTING_EVENTS.has(logged.type)) await queue.recall();
        if (MESSAGE_EVENTS.has(logged.type)) await addConcerned(logged, concerned);
      }
      for (const [id, one] of concerned) {
        one.wanted = last;
        wanted.set(id, last);
      }
      position = last;
      return true;
    },
    seen(webhooks) {
      for (const [id, at] of webhooks) if ((wanted.get(id) ?? 0) <= at) wanted.delete(id);
    },
  };
}
