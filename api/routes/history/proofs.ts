/** Proofs that the log was not altered: a Merkle tree over it (RFC 9162), and signed checkpoints (C2SP tlog-checkpoint). */
import * as contract from '../../../shared/contract/history/proofs.ts';
import { AppError, invalid, notFound, orNotFound, unavailable } from '../../../shared/errors.ts';
import { showPosition } from '../../http/consistency.ts';
import type { RequestContext } from '../../http/context.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const TEXT = 'text/plain; charset=utf-8';

const base64 = (hashes: readonly Buffer[]): string[] => hashes.map((hash) => hash.toString('base64'));

/** @throws AppError 400; the message gives the valid range */
function checkRange(name: string, value: number, from: number, to: number): void {
  if (value >= from && value <= to) return;
  if (from > to) throw invalid(`${name}: the tree over the log has ${to} events, which is too few; try again later`);
  throw invalid(`${name}: must be a whole number from ${from} to ${to}`);
}

const noneYet = () =>
  unavailable('No checkpoint of the log has been signed yet; the first one is signed soon after the start. Try again.');

/** The tree of a size ends with the event before that number. */
const showTree = async ({ logIndex }: Services, context: RequestContext, size: number): Promise<void> =>
  showPosition(context, await logIndex.positionOf(size - 1));

const latest = async ({ proofs }: Services) => (await proofs.checkpoint()) ?? Promise.reject(noneYet());

/** @throws AppError 400, 404 */
async function checkSigned(services: Services, size: number): Promise<void> {
  checkRange('size', size, 1, (await latest(services)).size);
  if (await services.proofs.checkpoint(size)) return;
  const around = await services.proofs.sizesAround(size);
  throw new AppError(
    404,
    `No checkpoint was signed at size ${size}; the nearest ${around.length === 1 ? 'is' : 'are'} of ${around.join(' and ')}.`,
  );
}

const key = defineRoute({
  method: 'get',
  path: '/api/history/key',
  noPast: 'proofs name the size of the tree',
  summary: 'Get the public key of the log',
  description:
    'A verifier key of a C2SP signed note: name, hash and Ed25519 key. With `size`: the key that signed the checkpoint of that size, which may be an earlier one.',
  access: 'any',
  rules: { agentKeys: 'any', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'history',
  query: contract.sizeQuery,
  refuses: [404],
  responses: { 200: { description: 'The verifier key', type: 'text/plain' } },
  async handle({ query, services, context }) {
    if (query.size !== undefined) await checkSigned(services, query.size);
    const content = await services.proofs.key(query.size);
    if (content === undefined) throw query.size === undefined ? noneYet() : notFound('Key');
    await showTree(services, context, query.size ?? (await latest(services)).size);
    return { text: { type: TEXT, content } };
  },
});

const checkpoint = defineRoute({
  method: 'get',
  path: '/api/history/checkpoint',
  noPast: 'proofs name the size of the tree',
  summary: 'Get a signed checkpoint of the log',
  description:
    'A C2SP checkpoint: name of the log, number of its events, root of the tree over them, signature. By default the latest: one is signed within a minute of an event.',
  access: 'any',
  rules: { agentKeys: 'any', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'history',
  query: contract.sizeQuery,
  refuses: [404],
  responses: { 200: { description: 'The note, byte for byte', type: 'text/plain' } },
  async handle({ query: { size }, services, context }) {
    if (size !== undefined) await checkSigned(services, size);
    const note = size === undefined ? await latest(services) : await services.proofs.checkpoint(size);
    const found = orNotFound(note, 'Checkpoint');
    await showTree(services, context, found.size);
    return { text: { type: TEXT, content: found.text } };
  },
});

const inclusion = defineRoute({
  method: 'get',
  path: '/api/history/proof',
  noPast: 'proofs name the size of the tree',
  summary: 'Prove that an event is in the log',
  description:
    'The path from the event to the root of the tree of a checkpoint (RFC 9162, 2.1.3). Its leaf is the SHA-256 of a zero byte and of the canonical JSON (RFC 8785) of `{id, type, stream, revision, data, meta}` as `/api/history/events` shows them.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  shared: 'history',
  query: contract.proofQuery,
  refuses: [404],
  responses: { 200: { description: 'The path', schema: contract.proofResponse } },
  async respond({ query: { event, size: wanted }, services, context }) {
    const { logIndex, proofs } = services;
    await logIndex.settled();
    const { number: index } = orNotFound(await logIndex.find(event), 'Event');
    const treeSize = await proofs.size();
    const size = wanted ?? (await latest(services)).size;
    if (wanted === undefined && size <= index) {
      throw invalid(
        `size: the latest checkpoint has ${size} events, and this event is number ${index}; give a size from ${index + 1} to ${treeSize}, or try again in a minute`,
      );
    }
    checkRange('size', size, index + 1, treeSize);
    const { leaf, path } = await proofs.inclusion(index, size);
    await showTree(services, context, size);
    return { index, size, leaf: leaf.toString('base64'), path: base64(path) };
  },
});

const consistency = defineRoute({
  method: 'get',
  path: '/api/history/consistency',
  noPast: 'proofs name the size of the tree',
  summary: 'Prove that the log is append-only',
  description: 'Proves that the tree of `from` events is the beginning of the tree of `to` events (RFC 9162, 2.1.4).',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  shared: 'history',
  query: contract.consistencyQuery,
  responses: { 200: { description: 'The proof; empty if both are the same', schema: contract.consistencyResponse } },
  async respond({ query: { from, to }, services, context }) {
    const { logIndex, proofs } = services;
    await logIndex.settled();
    checkRange('to', to, 1, await proofs.size());
    checkRange('from', from, 1, to);
    await showTree(services, context, to);
    return { path: base64(await proofs.consistency(from, to)) };
  },
});

export const historyProofRoutes: readonly Route[] = [key, checkpoint, inclusion, consistency];
