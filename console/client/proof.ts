/**
 * Verifies proofs of the log in the browser, without trust in the service: RFC 9162 trees, C2SP checkpoints, Ed25519.
 * `docs/proofs.md` describes the formats.
 */
export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array<ArrayBuffer>;
}

type Bytes = Uint8Array<ArrayBuffer>;

export const fromBase64 = (text: string): Bytes => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
export const toBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));
const utf8 = (text: string): Bytes => new TextEncoder().encode(text);
const same = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, at) => byte === b[at]);

async function sha256(...parts: readonly Uint8Array[]): Promise<Bytes> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', all));
}

const node = (left: Uint8Array, right: Uint8Array) => sha256(Uint8Array.of(1), left, right);

/** Canonical JSON (RFC 8785) of a parsed JSON value. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`);
  return `{${fields.join(',')}}`;
}

interface LogEvent {
  readonly id: string;
  readonly type: string;
  readonly stream: string;
  readonly revision: number;
  readonly data: unknown;
  readonly meta: unknown;
}

export const leafOf = ({ id, type, stream, revision, data, meta }: LogEvent): Promise<Bytes> =>
  sha256(Uint8Array.of(0), utf8(canonical({ id, type, stream, revision, data, meta })));

/** @throws Error with a readable message unless the note is signed by the key */
export async function openCheckpoint(note: string, verifierKey: string): Promise<Checkpoint> {
  const [name = '', hash = '', ...rest] = verifierKey.trim().split('+');
  const key = fromBase64(rest.join('+'));
  if (key[0] !== 1 || key.length !== 33) throw new Error('The key is not an Ed25519 key.');
  const blank = note.indexOf('\n\n');
  const text = note.slice(0, blank + 1);
  const publicKey = await crypto.subtle.importKey('raw', key.slice(1), 'Ed25519', false, ['verify']);
  const hex = (bytes: Uint8Array) => Array.from(bytes, (n) => n.toString(16).padStart(2, '0')).join('');
  for (const line of note.slice(blank + 2).split('\n')) {
    const [dash, signer, base64 = ''] = line.split(' ');
    if (dash !== '—' || signer !== name) continue;
    const bytes = fromBase64(base64);
    if (hex(bytes.slice(0, 4)) !== hash) continue;
    if (!(await crypto.subtle.verify('Ed25519', publicKey, bytes.slice(4), utf8(text)))) break;
    const [origin = '', size = '', root = ''] = text.split('\n');
    return { origin, size: Number(size), root: fromBase64(root) };
  }
  throw new Error('The checkpoint is not signed by the key of the log.');
}

const half = (n: number) => Math.floor(n / 2);

/** Whether a tree with this root contains a leaf (RFC 9162, 2.1.3.2). */
export async function isIncluded(
  leaf: Uint8Array,
  index: number,
  path: readonly string[],
  { size, root }: Checkpoint,
): Promise<boolean> {
  if (index >= size) return false;
  let [fn, sn] = [index, size - 1];
  let hash = leaf;
  for (const one of path.map(fromBase64)) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      hash = await node(one, hash);
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [half(fn), half(sn)];
    } else hash = await node(hash, one);
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 && same(hash, root);
}

/** Whether the second tree continues the first (RFC 9162, 2.1.4.2). */
export async function continues(first: Checkpoint, second: Checkpoint, path: readonly string[]): Promise<boolean> {
  if (first.size === second.size) return path.length === 0 && same(first.root, second.root);
  if (first.size < 1 || first.size > second.size) return false;
  const hashes = path.map(fromBase64);
  const isPower = Number.isInteger(Math.log2(first.size));
  if (isPower) hashes.unshift(first.root as Bytes);
  const [start, ...rest] = hashes;
  if (!start) return false;
  let [fn, sn] = [first.size - 1, second.size - 1];
  while (fn % 2 === 1) [fn, sn] = [half(fn), half(sn)];
  let [a, b]: [Uint8Array, Uint8Array] = [start, start];
  for (const one of rest) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      a = await node(one, a);
      b = await node(one, b);
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [half(fn), half(sn)];
    } else b = await node(b, one);
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 && same(a, first.root) && same(b, second.root);
}
