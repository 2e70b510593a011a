/** The deployment's current API key. Its table belongs to the projection `agent_keys`. */
import { globalKeyConfigured, globalKeyRotated } from '../../shared/events/auth/global-key.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineTable, type Handler, on } from '../projection.ts';

/** A single row: the current key. */
export const globalKeyTable = defineTable(
  'global_key',
  {
    one: 'int',
    key_id: 'bigint',
    source: 'text',
    masked: 'text',
    rotated_at: 'bigint?',
    rotated_by: 'text?',
  },
  { key: ['one'] },
);

export const globalKeyHandlers: readonly Handler[] = [
  on(globalKeyConfigured, ({ data }) => [
    change(globalKeyTable, { one: 1 }, (row) => ({
      one: 1,
      key_id: data.key_id,
      source: data.source,
      masked: data.masked,
      rotated_at: row?.rotated_at ?? null,
      rotated_by: row?.rotated_by ?? null,
    })),
  ]),
  on(globalKeyRotated, ({ data, meta }) => [
    change(globalKeyTable, { one: 1 }, () => ({
      one: 1,
      key_id: data.key_id,
      source: 'database',
      masked: data.masked,
      rotated_at: seconds(meta.at),
      rotated_by: meta.actor.name,
    })),
  ]),
];
