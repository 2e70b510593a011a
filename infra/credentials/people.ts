/** Erases people from stores other than the log and the read models (`shared/ports/auth/people.ts`). */

import { ERASED } from '../../shared/erased-texts.ts';
import { fieldKeyName } from '../../shared/event-store/sealed-values.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { PersonRecords } from '../../shared/ports/auth/people.ts';
import type { Database } from '../database/database.ts';
import type { ErasablePersonKeys } from './person-keys.ts';
import { eraseReplies } from './replies.ts';

/** As it stands in JSON. */
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** The places of a name in a text (`withName`): the whole text, its beginning, its end. */
const standing = (name: string) => [`"${inJson(name)}"`, `"${inJson(name)} `, ` ${inJson(name)}"`];

export function createPersonRecords(parts: {
  readonly database: Pick<Database, 'pool'>;
  readonly store: EventStore;
  readonly keys: ErasablePersonKeys;
}): PersonRecords {
  const { pool } = parts.database;
  const { store, keys } = parts;

  /** Every personal text in the events of a stream. */
  async function personalTexts(stream: string): Promise<Set<string>> {
    const texts = new Set<string>();
    for (const { type, data } of await store.readStream(stream))
      for (const field of catalogue.get(type)?.personal?.fields ?? []) {
        const value = data[field];
        if (typeof value === 'string' && value !== '') texts.add(value);
      }
    return texts;
  }

  /**
   * Replaces texts in stored webhook payloads, and masks them in stored replies of other services.
   *
   * @param workspaces undefined: all
   */
  async function forgetTexts(
    texts: readonly string[],
    username: string | null,
    workspaces?: readonly number[],
  ): Promise<void> {
    if (texts.length === 0) return;
    // An attempt that is under way would be recorded afterwards. It counts for nothing: its message is made again when
    // its lease would have ended, and by then no process has the texts any more. One on request is recorded without its
    // response.
    await pool.query(
      `UPDATE service.webhooks SET lease = NULL, erasures = erasures + 1 WHERE webhook_id IN (
         SELECT webhook_id FROM service.webhooks
         WHERE $1::int[] IS NULL OR workspace_id = ANY($1) ORDER BY webhook_id FOR UPDATE
       )`,
      [workspaces],
    );
    for (const text of texts)
      for (const [index, found] of standing(text).entries())
        await pool.query(
          `UPDATE service.webhook_deliveries SET payload = replace(payload, $1, $2)
           WHERE strpos(payload, $1) > 0 AND ($3::int[] IS NULL OR workspace_id = ANY($3))`,
          [found, standing(username ?? ERASED)[index], workspaces],
        );
    await eraseReplies(pool, texts, workspaces);
  }

  async function forgetKey(name: string): Promise<void> {
    await keys.erase(name);
    store.forget();
    // They are sealed, so it is unknown which of them concern the person. A repeated request still has no effect.
    await pool.query("UPDATE service.idempotency SET box = '' WHERE state = 'done'");
  }

  return {
    async erase(person, stream, username, workspaces) {
      const texts = await personalTexts(stream);
      texts.delete(username ?? '');
      // Before the key is deleted: afterwards the texts are unreadable.
      await forgetTexts([...texts], username, workspaces);
      await forgetKey(person);
      return [...texts];
    },
    forget: forgetTexts,
    async textOf(event, field) {
      const { data } = await store.reveal(event);
      const text = data[field];
      return typeof text === 'string' && text !== '' ? text : null;
    },
    async redact(event, field, text) {
      const { username } = event.data;
      const name = typeof username === 'string' ? username : null;
      if (text !== null && text !== name) await forgetTexts([text], name);
      await forgetKey(fieldKeyName(`${event.id}/${field}`));
    },
  };
}
