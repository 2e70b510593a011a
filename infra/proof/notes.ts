/**
 * Checkpoints of the log as signed notes, and the keys that sign them: C2SP `tlog-checkpoint` and `signed-note`, so that
 * existing witnesses and verifiers read them.
 */
import { createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { isOrigin } from '../../shared/ports/history/proofs.ts';

/** The content of a checkpoint: the log with this name had this many events, and this root. */
export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

/** A checkpoint with its signatures. */
export interface Note extends Checkpoint {
  /** The whole note. */
  readonly text: string;
  /** The part that is signed. */
  readonly signed: string;
  readonly signatures: readonly { readonly name: string; readonly keyHash: string; readonly signature: Buffer }[];
}

/** The public half of a key, under the name of the log that it signs for. */
export interface VerifierKey {
  readonly name: string;
  /** 32 bytes. */
  readonly publicKey: Buffer;
}

/** The type of an Ed25519 key in a signed note. */
const ED25519 = 1;
/** The limit allows signatures of others, such as witnesses. */
const MAX_NOTE_CHARACTERS = 100_000;

/** The first four bytes of the SHA-256 of name and key, hex. */
export const keyHashOf = ({ name, publicKey }: VerifierKey): string =>
  hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ED25519), publicKey]), 'buffer')
    .subarray(0, 4)
    .toString('hex');

/** The public form of a key: `name+hash+key`. */
export const verifierKeyText = (key: VerifierKey): string =>
  `${key.name}+${keyHashOf(key)}+${Buffer.concat([Buffer.of(ED25519), key.publicKey]).toString('base64')}`;

/** @throws NoteError */
export function parseVerifierKey(text: string): VerifierKey {
  const [, name = '', keyHash, base64 = ''] = /^([^+]*)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  if (!isOrigin(name) || bytes.toString('base64') !== base64 || bytes.length !== 33 || bytes[0] !== ED25519)
    throw new NoteError('it is not a verifier key of an Ed25519 key, name+hash+key');
  const key = { name, publicKey: bytes.subarray(1) };
  if (keyHashOf(key) !== keyHash) throw new NoteError(`its hash ${keyHash} is not that of its name and key`);
  return key;
}

/** A text that is not a note, or not a key. */
export class NoteError extends Error {}

/** @param privateKey Ed25519 */
export const publicKeyOf = (privateKey: KeyObject): Buffer =>
  Buffer.from(createPublicKey(privateKey).export({ format: 'jwk' }).x as string, 'base64url');

/** The note about a checkpoint. */
export function signNote({ origin, size, root }: Checkpoint, privateKey: KeyObject): string {
  const signed = `${origin}\n${size}\n${root.toString('base64')}\n`;
  const keyHash = keyHashOf({ name: origin, publicKey: publicKeyOf(privateKey) });
  const line = Buffer.concat([Buffer.from(keyHash, 'hex'), sign(null, Buffer.from(signed), privateKey)]);
  return `${signed}\n— ${origin} ${line.toString('base64')}\n`;
}

/** @throws NoteError */
export function parseNote(text: string): Note {
  const end = text.lastIndexOf('\n\n');
  const signed = text.slice(0, end + 1);
  const lines = text.slice(end + 2).split('\n');
  if (text.length > MAX_NOTE_CHARACTERS || end < 0 || lines.pop() !== '' || lines.length === 0)
    throw new NoteError('it is not a signed note');
  const signatures = lines.map((line) => {
    const [, name, base64 = ''] = /^— (\S+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? [];
    const bytes = Buffer.from(base64, 'base64');
    if (name === undefined || !isOrigin(name) || bytes.length < 5 || bytes.toString('base64') !== base64)
      throw new NoteError('it has a malformed signature');
    return { name, keyHash: bytes.toString('hex', 0, 4), signature: bytes.subarray(4) };
  });
  const [origin = '', size = '', root = ''] = signed.split('\n');
  const bytes = Buffer.from(root, 'base64');
  if (
    !isOrigin(origin) ||
    !/^(0|[1-9]\d{0,15})$/.test(size) ||
    bytes.length !== 32 ||
    bytes.toString('base64') !== root
  )
    throw new NoteError('it is not a checkpoint: origin, size and root');
  return { text, signed, origin, size: Number(size), root: bytes, signatures };
}

/**
 * The notes in a file with several of them.
 *
 * @param lines without their line feeds; undefined: truncated
 * @throws NoteError
 */
export async function* notesOf(lines: AsyncIterable<Buffer | undefined>): AsyncGenerator<Note> {
  let text = '';
  let signed = false;
  for await (const bytes of lines) {
    if (!bytes) throw new NoteError('it breaks off');
    const line = bytes.toString();
    const signs = line.startsWith('— ');
    if (signed && !signs) {
      yield parseNote(text);
      text = '';
    }
    signed = signs;
    text += `${line}\n`;
    if (text.length > MAX_NOTE_CHARACTERS) throw new NoteError('it is not a signed note');
  }
  if (text !== '') yield parseNote(text);
}

/** The key that signed a note: one with the name and hash of a signature, which must then be right. */
export function signerOf(note: Note, keys: readonly VerifierKey[]): VerifierKey | undefined {
  return keys.find((key) =>
    note.signatures.some(
      ({ name, keyHash, signature }) =>
        name === note.origin &&
        name === key.name &&
        keyHash === keyHashOf(key) &&
        verify(null, Buffer.from(note.signed), publicKeyObject(key), signature),
    ),
  );
}

const objects = new WeakMap<VerifierKey, KeyObject>();

function publicKeyObject(key: VerifierKey): KeyObject {
  const known = objects.get(key);
  if (known) return known;
  const x = key.publicKey.toString('base64url');
  const object = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  objects.set(key, object);
  return object;
}
