/** What the tests of webhooks share. */
import type { Receiver } from '../receiver.ts';
import type { AgentsWorld } from './agents.ts';

/** A webhook's calls, for the files beside this one. */
export interface WebhooksWorld {
  readonly world: AgentsWorld;
  readonly receiver: Receiver;
  /** Creates one and gives the answer. */
  // biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
  create(fields?: object): Promise<any>;
  /** As the list shows it. */
  // biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
  find(id: number): Promise<any>;
}
