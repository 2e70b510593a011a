/** The tree, its proofs and its notes, against published vectors and a verifier that shares no code with them. */
import { createPublicKey, generateKeyPairSync, randomUUID, verify } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Pool } from 'pg';
import { leafHash, leafText } from '../../../infra/event-log/leaf.ts';
import { EMPTY_ROOT, GrowingRoot, nodeHash, treeHash } from '../../../infra/proof/hashing.ts';
import {
  keyHashOf,
  parseNote,
  parseVerifierKey,
  publicKeyOf,
  signerOf,
  signNote,
  verifierKeyText,
} from '../../../infra/proof/notes.ts';
import { completeTrees, consistencySpans, inclusionSpans, type Span } from '../../../infra/proof/paths.ts';
import { addLeaves } from '../../../infra/proof/tree.ts';
import { canonicalJson } from '../../../shared/canonical-json.ts';
import { isOrigin } from '../../../shared/ports/history/proofs.ts';
import { failureOf } from '../../support/kit.ts';
import { canonicalText, isContinued, isIncluded, leafOf, openCheckpoint, treeHashOf } from '../../support/log-proof.ts';

describe('the tree over a log', () => {
  it('is extended only from its checkpoint: a process that was replaced is fenced', async () => {
    const edge = { size: 0, latest: 0, open: [] };
    const event = { id: randomUUID(), type: 'A', stream: 's', revision: 0, position: 1, data: {}, meta: { at: 5 } };
    const move = { name: 'log_tree', generation: 1, from: 0, to: 1 };
    const moving = (rowCount: number) =>
      addLeaves({ query: async () => ({ rowCount }) } as unknown as Pool, edge, [event], move);
    expect(await moving(1)).to.deep.include({ size: 1, latest: 5 });
    expect(await failureOf(moving(0))).to.match(/^log_tree is led by another process/);
  });
});

describe('canonical JSON', () => {
  it('matches the examples of RFC 8785', () => {
    // Section 3.2.2, and the order of keys of 3.2.3.
    expect(
      canonicalJson({
        numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
        string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
        literals: [null, true, false],
      }),
    ).to.equal(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
    const keys = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\u{1f600}': 5, '\u0080': 6, '\u00f6': 7 };
    expect(Object.values(JSON.parse(canonicalJson(keys)))).to.have.length(7);
    expect(canonicalJson(keys)).to.equal('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"\u{1f600}":5,"\ufb33":3}');
  });

  it('formats numbers as in appendix B', () => {
    const bits = (high: number, low: number) => {
      const view = new DataView(new ArrayBuffer(8));
      view.setUint32(0, high);
      view.setUint32(4, low);
      return view.getFloat64(0);
    };
    const cases: [number, string][] = [
      [bits(0x80000000, 0), '0'],
      [bits(0, 1), '5e-324'],
      [bits(0x7fefffff, 0xffffffff), '1.7976931348623157e+308'],
      [bits(0x43400000, 0), '9007199254740992'],
      [bits(0x444b1ae4, 0xd6e2ef4f), '999999999999999900000'],
      [bits(0x444b1ae4, 0xd6e2ef50), '1e+21'],
      [bits(0x44b52d02, 0xc7e14af6), '1e+23'],
      [bits(0x44b52d02, 0xc7e14af5), '9.999999999999997e+22'],
      [bits(0x3eb0c6f7, 0xa0b5ed8d), '0.000001'],
      [bits(0x41b3de43, 0x55555553), '333333333.3333332'],
    ];
    for (const [value, text] of cases) expect(canonicalJson(value)).to.equal(text);
  });

  it('does not depend on the order of keys, and matches another implementation', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = canonicalJson(value);
        expect(text).to.equal(canonicalText(value));
        expect(canonicalJson(JSON.parse(text))).to.equal(text);
      }),
    );
    expect(canonicalJson({ b: 1, a: { d: 1, c: 2 } })).to.equal(canonicalJson({ a: { c: 2, d: 1 }, b: 1 }));
  });
});

describe('tree over the log', () => {
  /** The leaves of the test vectors of Certificate Transparency, and the roots of the trees over the first 1 to 8. */
  const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
  const roots = [
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ];

  it('has the roots of the published test vectors', () => {
    const tree = new GrowingRoot();
    const leaves: Buffer[] = [];
    expect(tree.root.toString('hex')).to.equal('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    for (const [n, input] of inputs.entries()) {
      leaves.push(leafHash(Buffer.from(input, 'hex')));
      tree.add(leaves.at(-1) as Buffer);
      expect(tree.root.toString('hex')).to.equal(roots[n]);
      expect(treeHash(leaves).toString('hex')).to.equal(roots[n]);
      expect(treeHashOf(leaves).toString('hex'), 'the verifier of the tests').to.equal(roots[n]);
    }
    expect(EMPTY_ROOT.equals(treeHashOf([]))).to.equal(true);
  });

  it('hashes an event as the text of its line in an export', () => {
    const event = { id: 'i', type: 'T', stream: 's', revision: 0, data: { b: 1, a: 'ä\0' }, meta: { at: 5 } };
    const text = '{"data":{"a":"ä\\u0000","b":1},"id":"i","meta":{"at":5},"revision":0,"stream":"s","type":"T"}';
    expect(leafText(event)).to.equal(text);
    expect(leafHash(text).equals(leafHash(Buffer.from(text)))).to.equal(true);
    expect(leafHash(text).equals(leafOf(text))).to.equal(true);
  });

  const leaves = Array.from({ length: 40 }, (_, n) => leafHash(`leaf ${n}`));
  const hashOf = ({ from, to }: Span) => treeHashOf(leaves.slice(from, to));

  it('proves that each event is in each tree, and nothing else', () => {
    for (let size = 1; size <= leaves.length; size++) {
      const root = treeHashOf(leaves.slice(0, size));
      for (let index = 0; index < size; index++) {
        const path = inclusionSpans(index, size).map(hashOf);
        const leaf = leaves[index] as Buffer;
        expect(isIncluded({ leaf, index, size, path }, root), `${index} in ${size}`).to.equal(true);
        const wrong = leaves[(index + 1) % leaves.length] as Buffer;
        expect(isIncluded({ leaf: wrong, index, size, path }, root)).to.equal(false);
        if (size > 1) expect(isIncluded({ leaf, index, size, path: path.slice(1) }, root)).to.equal(false);
      }
    }
  });

  it('proves that each tree is consistent with each smaller one, and with no other', () => {
    for (let to = 1; to <= leaves.length; to++) {
      const second = { size: to, root: treeHashOf(leaves.slice(0, to)) };
      for (let from = 1; from <= to; from++) {
        const first = { size: from, root: treeHashOf(leaves.slice(0, from)) };
        const proof = consistencySpans(from, to).map(hashOf);
        expect(isContinued(first, second, proof), `${from} to ${to}`).to.equal(true);
        const other = { size: from, root: treeHashOf(leaves.slice(1, from + 1)) };
        expect(isContinued(other, second, proof)).to.equal(false);
      }
    }
  });

  it('splits spans into complete trees that start at a multiple of their size', () => {
    for (let size = 1; size <= leaves.length; size++) {
      for (const span of [{ from: 0, to: size }, ...inclusionSpans(size - 1, leaves.length)]) {
        const trees = completeTrees(span);
        expect(trees.reduce((sum, { leaves: count }) => sum + count, 0)).to.equal(span.to - span.from);
        for (const { first, leaves: count } of trees) {
          expect(Number.isInteger(Math.log2(count))).to.equal(true);
          expect(first % count).to.equal(0);
        }
        const root = trees
          .map(({ first, leaves: count }) => hashOf({ from: first, to: first + count }))
          .reduceRight((right, left) => nodeHash(left, right));
        expect(root.equals(hashOf(span))).to.equal(true);
      }
    }
  });
});

describe('signed notes', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = { name: 'example.com/log', publicKey: publicKeyOf(privateKey) };
  const root = leafHash('x');
  const text = signNote({ origin: key.name, size: 12, root }, privateKey);

  it('have keys in the published form', () => {
    // From the documentation of the package golang.org/x/mod/sumdb/note.
    const published = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
    const parsed = parseVerifierKey(published);
    expect(keyHashOf(parsed)).to.equal('c74f20a3');
    expect(verifierKeyText(parsed)).to.equal(published);
    const signed =
      "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
    const signature = Buffer.from(
      'x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=',
      'base64',
    );
    expect(signature.toString('hex', 0, 4)).to.equal('c74f20a3');
    const publicKey = createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: parsed.publicKey.toString('base64url') },
      format: 'jwk',
    });
    expect(verify(null, Buffer.from(signed), publicKey, signature.subarray(4))).to.equal(true);
  });

  it('can be opened by another implementation and by this one', () => {
    expect(openCheckpoint(text, verifierKeyText(key))).to.deep.equal({ origin: key.name, size: 12, root });
    const note = parseNote(text);
    expect({ origin: note.origin, size: note.size, root: note.root }).to.deep.equal({
      origin: key.name,
      size: 12,
      root,
    });
    expect(signerOf(note, [key])).to.equal(key);
    expect(text).to.match(/^example\.com\/log\n12\n[A-Za-z0-9+/]{43}=\n\n— example\.com\/log [A-Za-z0-9+/]+=\n$/);
  });

  it('keep the signatures of others, such as witnesses', () => {
    const witness = `— witness.example ${Buffer.concat([Buffer.from('01020304', 'hex'), Buffer.alloc(72)]).toString('base64')}\n`;
    const note = parseNote(text + witness);
    expect(note.text).to.equal(text + witness);
    expect(signerOf(note, [key])).to.equal(key);
  });

  it('do not verify if any byte is changed', () => {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at++) {
      const altered = Buffer.from(bytes);
      altered[at] = (altered[at] as number) ^ 1;
      let signer: unknown;
      try {
        signer = signerOf(parseNote(altered.toString()), [key]);
      } catch {
        continue;
      }
      expect(signer, `byte ${at}`).to.equal(undefined);
    }
    const other = { ...key, publicKey: publicKeyOf(generateKeyPairSync('ed25519').privateKey) };
    expect(signerOf(parseNote(text), [other])).to.equal(undefined);
  });

  it('reject invalid keys and names', () => {
    for (const bad of [
      '',
      'a+b',
      verifierKeyText(key).slice(1),
      verifierKeyText(key).slice(0, -4),
      `${verifierKeyText(key)}A`,
    ])
      expect(() => parseVerifierKey(bad), bad).to.throw();
    for (const name of ['', 'a b', 'a+b', 'a\u00a0b', 'a\nb']) expect(isOrigin(name), name).to.equal(false);
  });
});
