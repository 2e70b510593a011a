/**
 * A verifier of the log that shares no code with the product: written from RFC 9162 (trees and proofs), RFC 8785 (JSON) and
 * C2SP signed-note and tlog-checkpoint.
 */
import { createHash, createPublicKey, verify } from 'node:crypto';

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** RFC 8785, by way of an ordered list of members. */
export function canonicalText(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new Error(`${value} is not in JSON`);
    // ECMAScript's own form of a number, without a sign for zero.
    return value === 0 ? '0' : String(value);
  }
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  const members = Object.entries(value as object).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${quoted(name)}:${canonicalText(member)}`).join(',')}}`;
}

const SHORT: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\f': '\\f',
  '\r': '\\r',
  '"': '\\"',
  '\\': '\\\\',
};

const quoted = (text: string): string =>
  `"${[...text].map((one) => SHORT[one] ?? (one < ' ' ? `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}` : one)).join('')}"`;

/** RFC 9162, 2.1.1: the hash of a list with one entry. */
export const leafOf = (entry: string | Uint8Array): Buffer =>
  sha256(Buffer.of(0), typeof entry === 'string' ? Buffer.from(entry) : entry);

/** RFC 9162, 2.1.1: the Merkle tree hash of a list of leaves. */
export function treeHashOf(leaves: readonly Buffer[]): Buffer {
  const n = leaves.length;
  if (n === 0) return sha256();
  if (n === 1) return leaves[0] as Buffer;
  const k = 2 ** Math.ceil(Math.log2(n) - 1);
  return sha256(Buffer.of(1), treeHashOf(leaves.slice(0, k)), treeHashOf(leaves.slice(k)));
}

const isOdd = (n: number) => n % 2 === 1;
const half = (n: number) => Math.floor(n / 2);

/** RFC 9162, 2.1.3.2: whether the path shows that the leaf is in the tree. */
export function isIncluded(
  { leaf, index, size, path }: { leaf: Buffer; index: number; size: number; path: readonly Buffer[] },
  root: Buffer,
): boolean {
  if (index >= size) return false;
  let [fn, sn, r] = [index, size - 1, leaf];
  for (const p of path) {
    if (sn === 0) return false;
    if (isOdd(fn) || fn === sn) {
      r = sha256(Buffer.of(1), p, r);
      if (!isOdd(fn)) {
        while (fn !== 0 && !isOdd(fn)) [fn, sn] = [half(fn), half(sn)];
      }
    } else r = sha256(Buffer.of(1), r, p);
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 && r.equals(root);
}

/** RFC 9162, 2.1.4.2: whether the path shows that the second tree continues the first. */
export function isContinued(
  first: { readonly size: number; readonly root: Buffer },
  second: { readonly size: number; readonly root: Buffer },
  proof: readonly Buffer[],
): boolean {
  if (first.size === second.size) return proof.length === 0 && first.root.equals(second.root);
  if (proof.length === 0) return false;
  const isPower = Number.isInteger(Math.log2(first.size));
  const path = isPower ? [first.root, ...proof] : [...proof];
  let [fn, sn] = [first.size - 1, second.size - 1];
  while (isOdd(fn)) [fn, sn] = [half(fn), half(sn)];
  let [fr, sr] = [path[0] as Buffer, path[0] as Buffer];
  for (const c of path.slice(1)) {
    if (sn === 0) return false;
    if (isOdd(fn) || fn === sn) {
      fr = sha256(Buffer.of(1), c, fr);
      sr = sha256(Buffer.of(1), c, sr);
      if (!isOdd(fn)) {
        while (fn !== 0 && !isOdd(fn)) [fn, sn] = [half(fn), half(sn)];
      }
    } else sr = sha256(Buffer.of(1), sr, c);
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 && fr.equals(first.root) && sr.equals(second.root);
}

export interface ReadCheckpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

/** Opens a checkpoint with a verifier key. @throws Error unless it is signed by that key */
export function openCheckpoint(note: string, verifierKey: string): ReadCheckpoint {
  const plus = verifierKey.split('+');
  const [name, hash] = [plus[0] as string, plus[1] as string];
  const key = Buffer.from(plus.slice(2).join('+'), 'base64');
  if (key[0] !== 1 || key.length !== 33) throw new Error('the key is not of Ed25519');
  if (sha256(Buffer.from(name), Buffer.of(0x0a), key).toString('hex', 0, 4) !== hash)
    throw new Error('the hash of the key is wrong');
  const blank = note.indexOf('\n\n');
  const text = note.slice(0, blank + 1);
  const lines = note.slice(blank + 2).split('\n');
  if (lines.pop() !== '') throw new Error('the note does not end in a line feed');
  for (const line of lines) {
    const [dash, signer, base64 = ''] = line.split(' ');
    const bytes = Buffer.from(base64, 'base64');
    if (dash !== '—' || signer !== name || bytes.toString('hex', 0, 4) !== hash) continue;
    const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.subarray(1)]);
    const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
    if (!verify(null, Buffer.from(text), publicKey, bytes.subarray(4))) throw new Error('the signature is wrong');
    const [origin = '', size = '', root = ''] = text.split('\n');
    return { origin, size: Number(size), root: Buffer.from(root, 'base64') };
  }
  throw new Error('the note is not signed by this key');
}

/** The leaf of an event as the interface shows it. */
export const leafOfEvent = ({ id, type, stream, revision, data, meta }: Readonly<Record<string, unknown>>): Buffer =>
  leafOf(canonicalText({ id, type, stream, revision, data, meta }));
