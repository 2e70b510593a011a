import { expect } from 'chai';
import {
  configureGlobalKey,
  decideConfigure,
  decideRotate,
  generateGlobalKey,
  globalKeyDecider,
  maskChosenKey,
  maskKey,
  newGlobalKey,
  rotateGlobalKey,
} from '../../../commands/auth/global-key.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { fixtureForEach } from '../../support/fixture.ts';
import { givenFor, outcomeOf } from '../../support/kit.ts';

describe('global key decisions', () => {
  const keys = givenFor(globalKeyDecider);
  const env = { key_id: 1, source: 'environment', masked: '****' } as const;

  it('record the key from the environment once, and it replaces a generated key', () => {
    expect(decideConfigure(keys().state, env)).to.have.length(1);
    expect(decideConfigure(keys(...decideConfigure(keys().state, env)).state, env)).to.have.length(0);
    const generated = keys(...decideConfigure(keys().state, { key_id: 2, source: 'database', masked: 'm' })).state;
    expect(decideConfigure(generated, env)).to.have.length(1);
  });
  it('create only one generated key', () => {
    const generated = keys(...decideConfigure(keys().state, { key_id: 2, source: 'database', masked: 'm' })).state;
    expect(decideConfigure(generated, { key_id: 3, source: 'database', masked: 'n' })).to.have.length(0);
  });
  it('prefer a rotated key over all but the next rotation', () => {
    const rotation = decideRotate(keys(...decideConfigure(keys().state, env)).state, { key_id: 4, masked: 'r' }, 1);
    expect(rotation[0]?.data).to.deep.equal({ key_id: 4, masked: 'r', old_source: 'environment', old_masked: '****' });
    const rotated = keys(...rotation);
    expect(decideConfigure(rotated.state, { ...env, key_id: 5 })).to.have.length(0);
    expect(decideRotate(rotated.state, { key_id: 6, masked: 's' }, 4)).to.have.length(1);
    for (const replaced of [1, null]) rotated.when(decideRotate, { key_id: 6, masked: 's' }, replaced).thenRefuses(409);
  });
  it('mask the key', () => {
    expect(maskKey('123456789')).to.equal('****');
    expect(maskKey('1234567890')).to.equal('1234-****-****-67890');
    expect(maskChosenKey('short-secret')).to.equal('****');
    expect(maskChosenKey('x'.repeat(23))).to.equal('****');
    expect(maskChosenKey('abcdefghijklmnopqrstuvwx')).to.equal('abcd-****-****-tuvwx');
    expect(newGlobalKey()).to.match(/^mc_[0-9a-f]{48}$/);
  });
});

describe('the current global key', () => {
  const KEY = 'a-key-that-somebody-chose';
  const auth = fixtureForEach(() => authMemory());
  const configure = (key: string) => configureGlobalKey(auth.commands, auth.context(), auth.credentials.store, key);
  const generate = () => generateGlobalKey(auth.commands, auth.context(), auth.credentials.store);
  const rotate = () => rotateGlobalKey(auth.commands, auth.context(), auth.credentials.store);
  const state = async () => (await auth.world.process().load(globalKeyDecider, 'global_key')).state;
  const keys = () => [...auth.credentials.keys()].map(([key, record]) => [key, record.kind, record.keyId]);

  it('is the key from the environment, even after a restart', async () => {
    await configure(KEY);
    await configure(KEY);
    expect(keys()).to.deep.equal([[KEY, 'global', 1]]);
    expect(await state()).to.deep.equal({
      keyId: 1,
      source: 'environment',
      masked: 'a-ke-****-****-chose',
      rotated: false,
    });
    expect(auth.events('GlobalKeyConfigured')).to.have.length(1);
  });

  it('changes with the environment, and the previous key stops working', async () => {
    await configure(KEY);
    await configure('another-key-that-was-chosen');
    expect(keys()).to.deep.equal([['another-key-that-was-chosen', 'global', 2]]);
    expect((await state()).keyId).to.equal(2);
  });

  it('cannot be an agent’s key', async () => {
    await auth.credentials.store.addKey(KEY, { kind: 'agent', keyId: 7 });
    expect(await outcomeOf(configure(KEY))).to.equal('409');
    expect(auth.world.written()).to.deep.equal([]);
  });

  it('is generated once if there is none, and then shown', async () => {
    const key = await generate();
    expect(key).to.match(/^mc_[0-9a-f]{48}$/);
    expect(keys()).to.deep.equal([[key, 'global', 1]]);
    expect(await state()).to.include({ keyId: 1, source: 'database', masked: maskKey(key ?? ''), rotated: false });
    expect(await generate()).to.equal(undefined);
    expect(keys()).to.have.length(1);
  });

  it('is the key that another process has generated at the same time', async () => {
    const { addKey } = auth.credentials.store;
    let other: string | undefined;
    auth.credentials.store.addKey = async (...args) => {
      auth.credentials.store.addKey = addKey;
      other = await generateGlobalKey(auth.world.process(), auth.context(), auth.credentials.store);
      await addKey(...args);
    };
    expect(await generate()).to.equal(undefined);
    expect(keys()).to.deep.equal([[other, 'global', 2]]);
  });

  it('is replaced by a rotation, which permanently overrides the environment', async () => {
    await configure(KEY);
    const { key, masked, at, by } = await rotate();
    expect(keys()).to.deep.equal([[key, 'global', 2]]);
    expect(masked).to.equal(maskKey(key));
    expect(by).to.equal('tester');
    expect(at).to.be.closeTo(Date.now() / 1_000, 60);
    expect(await state()).to.deep.equal({ keyId: 2, source: 'database', masked, rotated: true });
    await configure(KEY);
    expect(keys(), 'the key of the environment').to.have.length(1);
    const next = await rotate();
    expect(keys()).to.deep.equal([[next.key, 'global', 3]]);
  });

  it('is replaced by one of several concurrent requests, and the others leave nothing behind', async () => {
    await configure(KEY);
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => outcomeOf(rotate())));
    expect(outcomes.sort()).to.deep.equal(['CONFLICT', 'CONFLICT', 'CONFLICT', 'done']);
    expect(keys()).to.have.length(1);
    expect(keys()[0]?.[2]).to.equal((await state()).keyId);
  });

  it('can be used to rotate itself only once', async () => {
    await configure(KEY);
    const from = (held: number) => rotateGlobalKey(auth.commands, auth.context(), auth.credentials.store, held);
    await from(1);
    expect(await outcomeOf(from(1))).to.equal('CONFLICT');
    expect(keys()).to.have.length(1);
  });

  it('can be created by a rotation', async () => {
    const { key } = await rotate();
    expect(keys()).to.deep.equal([[key, 'global', 1]]);
    expect(auth.events('GlobalKeyRotated')[0]?.data).to.include({ old_source: 'none', old_masked: null });
  });
});
