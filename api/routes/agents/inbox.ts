/**
 * Inboxes kept between heartbeats. Heartbeats are the most frequent calls, and between two of them there is mostly
 * nothing new for the agent: then its inbox need not be read again.
 */
import { LRUCache } from 'lru-cache';
import { INBOX_MODELS, type Inbox, inboxOf } from '../../../queries/agents/heartbeat.ts';
import type { AgentRef } from '../../../shared/contract/agents/agents.ts';
import { seconds } from '../../../shared/time.ts';
import type { Services } from '../../services.ts';

/** Characters of all inboxes of a process together. */
const KEPT_CHARACTERS = 16_000_000;

interface Kept {
  readonly inbox: Inbox;
  readonly stamp: string;
}

const caches = new WeakMap<Services, LRUCache<string, Kept>>();

function cacheOf(services: Services): LRUCache<string, Kept> {
  let cache = caches.get(services);
  if (!cache) {
    cache = new LRUCache({
      maxSize: KEPT_CHARACTERS,
      sizeCalculation: ({ inbox }) => JSON.stringify(inbox).length + 200,
    });
    caches.set(services, cache);
  }
  return cache;
}

const keyOf = (workspace: number, ref: AgentRef) => `${workspace} ${'id' in ref ? ref.id : `=${ref.name}`}`;

/**
 * The inbox of an agent, kept or read; undefined when there is no such agent. A kept one is right in what waits; the
 * agent itself may have been renamed or deleted since (`kept` says so), which the caller's append finds out.
 */
export async function keptInbox(
  services: Services,
  workspace: number,
  ref: AgentRef,
): Promise<{ readonly inbox: Inbox; readonly kept: boolean } | undefined> {
  const cache = cacheOf(services);
  const key = keyOf(workspace, ref);
  // Taken before the read: if something comes in between, the next heartbeat reads again. Never the other way round.
  const stamp = await services.freshness.stamp(INBOX_MODELS, workspace);
  const now = seconds(services.now());
  const before = cache.get(key);
  if (before?.stamp === stamp && now < before.inbox.until) return { inbox: before.inbox, kept: true };
  const inbox = await inboxOf(services.reads, workspace, ref, now);
  if (!inbox) return undefined;
  cache.set(key, { inbox, stamp });
  return { inbox, kept: false };
}

export function forgetInbox(services: Services, workspace: number, ref: AgentRef): void {
  cacheOf(services).delete(keyOf(workspace, ref));
}
