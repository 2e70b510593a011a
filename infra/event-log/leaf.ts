/** An event as a line of a signed bundle, and as a leaf of the tree over the log. */
import { hash } from 'node:crypto';
import { canonicalJson } from '../../shared/canonical-json.ts';
import type { LoggedEvent } from '../../shared/ports/event-log.ts';

/** The file of a bundle with its events, one a line. */
export const EVENTS_FILE = 'events.jsonl';

const LEAF = Buffer.of(0);

/** The hashed content of an event: canonical JSON of everything that the log stores of it, except its position. */
export const leafText = ({ id, type, stream, revision, data, meta }: Omit<LoggedEvent, 'position'>): string =>
  canonicalJson({ id, type, stream, revision, data, meta });

/** @param text of `leafText`, or its bytes */
export const leafHash = (text: string | Buffer): Buffer =>
  hash('sha256', typeof text === 'string' ? `\0${text}` : Buffer.concat([LEAF, text]), 'buffer');
