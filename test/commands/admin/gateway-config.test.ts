/** The gateway's document: what is hidden, what is protected, how agents stand in it. Pure. */
import { expect } from 'chai';
import fc from 'fast-check';
import {
  decidePutBack,
  decideRemoveAgent,
  decideReplace,
  decideUpdates,
  decideWriteAgent,
  gatewayConfigDecider,
  gatewayDocument,
} from '../../../commands/admin/gateway-config.ts';
import {
  DOCUMENT_BOUNDS,
  touchesProtected,
  withAgent,
  withoutAgent,
  withValue,
} from '../../../commands/admin/gateway-document.ts';
import type { Commands } from '../../../commands/handler.ts';
import {
  agentsOf,
  documentText,
  type GatewayDocument,
  hashOf,
  pathProblem,
  slug,
  withGatewayKeys,
} from '../../../shared/contract/admin/gateway-document.ts';
import { AppError, EventUnreadableError } from '../../../shared/errors.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import type { LoggedEvent } from '../../../shared/ports/event-log.ts';
import { MASK, masked, restored } from '../../../shared/secrets.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { failureOf, refusalOf } from '../../support/kit.ts';

function refused(act: () => unknown, status: number): AppError {
  const refusal = refusalOf(act);
  expect(refusal.status).to.equal(status);
  return refusal;
}

/** The document after a decision. */
const documentAfter = (drafts: readonly EventDraft[], before: GatewayDocument | null = null) =>
  drafts.reduce((state, draft) => gatewayConfigDecider.evolve(state, { ...draft, at: 0 }), { document: before })
    .document;

const secretDocument: GatewayDocument = {
  gateway: { port: 1, auth: { token: 't0', mode: 'token' } },
  channels: [
    { id: 'a', botToken: 'ta' },
    { id: 'b', botToken: 'tb' },
  ],
  models: { apiKey: 'k', 'api-key': 'k', api_key: 'k', maxTokens: 5, PASSWORD: 'p', clientSecret: '' },
};

const documents = fc.dictionary(
  fc.constantFrom('a', 'token', 'nested', 'list', 'apiKey'),
  fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string(),
      fc.integer(),
      fc.boolean(),
      tie('object'),
      fc.array(tie('value'), { maxLength: 3 }),
    ),
    object: fc.dictionary(fc.constantFrom('x', 'password', 'y', 'secret'), tie('value'), { maxKeys: 3 }),
  })).value,
);

describe('gateway document: secrets', () => {
  it('are masked wherever their key occurs, in any letter case', () => {
    expect(masked(secretDocument)).to.deep.equal({
      gateway: { port: 1, auth: { token: MASK, mode: 'token' } },
      channels: [
        { id: 'a', botToken: MASK },
        { id: 'b', botToken: MASK },
      ],
      models: {
        apiKey: MASK,
        'api-key': MASK,
        api_key: MASK,
        maxTokens: 5,
        PASSWORD: MASK,
        clientSecret: '',
      },
    });
    expect(masked({ tokens: ['a', { x: 'b' }] })).to.deep.equal({ tokens: [MASK, { x: MASK }] });
  });

  it('are restored when the masked document is sent back, in any order', () => {
    const shown = masked(secretDocument) as { channels: unknown[] };
    expect(restored({ ...shown, channels: shown.channels.toReversed() }, secretDocument, 'config')).to.deep.equal({
      ...secretDocument,
      channels: (secretDocument.channels as unknown[]).toReversed(),
    });
  });

  it('survive a round trip in any document', () => {
    fc.assert(
      fc.property(documents, (document) => {
        expect(restored(masked(document), document, 'config')).to.deep.equal(document);
      }),
    );
  });

  it('may be replaced; eight dashes elsewhere are plain text', () => {
    expect(restored({ token: 'new' }, { token: 'old' }, 'config')).to.deep.equal({ token: 'new' });
    expect(restored({ note: MASK }, { note: 'n' }, 'config')).to.deep.equal({ note: MASK });
    const { message } = refused(() => restored({ note: MASK, token: MASK }, { note: 'n' }, 'config'), 400);
    expect(message).to.match(/^config\.token: /);
  });
});

describe('gateway document: paths', () => {
  it('are rejected if a segment is empty or pollutes the prototype', () => {
    for (const path of ['', 'a..b', '.a', 'a.', '__proto__.x', 'a.constructor', 'prototype'])
      expect(pathProblem(path), path).to.be.a('string');
    expect(pathProblem('a.b-c.0')).to.equal(undefined);
  });

  it('to the gateway’s credentials are protected above and below', () => {
    expect(touchesProtected('gateway.auth.token', 'x')).to.equal(true);
    expect(touchesProtected('gateway.auth.password.x', 'x')).to.equal(true);
    expect(touchesProtected('gateway.auth', { secret: 'x' })).to.equal(true);
    expect(touchesProtected('gateway', { auth: { token: 'x' } })).to.equal(true);
    expect(touchesProtected('gateway', 5)).to.equal(true);
    expect(touchesProtected('gateway.port', 5)).to.equal(false);
    expect(touchesProtected('other.auth.token', 5)).to.equal(false);
  });

  it('are set without changing the rest', () => {
    expect(withValue({ a: { b: 1, c: 2 } }, 'a.b', 3)).to.deep.equal({ a: { b: 3, c: 2 } });
    expect(withValue({ a: 5 }, 'a.b.c', 3)).to.deep.equal({ a: { b: { c: 3 } } });
  });
});

describe('gateway document: changes', () => {
  const stored = { document: secretDocument };

  it('store the first document unchanged', () => {
    expect(documentAfter(decideReplace({ document: null }, secretDocument))).to.deep.equal(secretDocument);
  });

  it('keep masked secrets and the gateway’s credentials in later documents', () => {
    const shown = masked(secretDocument) as GatewayDocument;
    expect(documentAfter(decideReplace(stored, { ...shown, extra: 1 }))).to.deep.equal({ ...secretDocument, extra: 1 });
    expect(documentAfter(decideReplace(stored, { extra: 1 }))).to.deep.equal({
      extra: 1,
      gateway: { auth: { token: 't0' } },
    });
    refused(() => decideReplace(stored, { gateway: { auth: { token: 'mine' } } }), 403);
    refused(() => decideReplace(stored, { gateway: { auth: { password: 'mine' } } }), 403);
  });

  it('report an outdated hash as a conflict', () => {
    const hash = hashOf(documentText(secretDocument));
    expect(decideReplace(stored, secretDocument, hash)).to.have.length(1);
    expect(refused(() => decideReplace(stored, secretDocument, 'old'), 409).extras.code).to.equal('CONFLICT');
    expect(refused(() => decideUpdates(stored, { 'gateway.port': 2 }, 'old'), 409).message).to.match(/modified/);
    expect(decideReplace({ document: null }, {}, hashOf(''))).to.have.length(1);
  });

  it('are rejected if the result would be too deep or too large, for every kind of change', () => {
    const nested = (levels: number) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
    const { depth, characters } = DOCUMENT_BOUNDS;
    expect(decideReplace({ document: null }, { a: nested(depth - 1) })).to.have.length(1);
    refused(() => decideReplace({ document: null }, { a: nested(depth) }), 400);
    refused(() => decideUpdates(stored, { 'gateway.x': nested(depth - 1) }), 400);
    refused(() => decideUpdates(stored, { [`gateway${'.x'.repeat(depth)}`]: 1 }), 400);
    const deep = refused(
      () => decideWriteAgent(stored, 'agent-created', { name: 'a', config: { model: nested(depth - 1) } }),
      400,
    );
    expect(deep.message).to.match(/nested more than 64 levels deep \(agents\.list\.0\.model\.0/);
    let document: GatewayDocument = {};
    const config = { model: Array(50_000).fill(1) };
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) {
      const write = () => decideWriteAgent({ document }, 'agent-created', { name, config });
      if (JSON.stringify(document).length + 100_100 <= characters) document = documentAfter(write()) ?? {};
      else expect(refused(write, 413).message).to.match(/at most 700000 characters .* it was not changed/);
    }
    expect(agentsOf(document)).to.have.length(6);
  });

  it('set values at paths under existing keys', () => {
    const drafts = decideUpdates(stored, { 'gateway.port': 2, 'models.extra.deep': true, 'models.apiKey': MASK });
    expect(documentAfter(drafts)).to.deep.include({ gateway: { port: 2, auth: { token: 't0', mode: 'token' } } });
    expect(documentAfter(drafts)?.models).to.deep.include({ apiKey: 'k', extra: { deep: true } });
    expect(drafts[0]?.data.updated_keys).to.deep.equal(['gateway.port', 'models.extra.deep', 'models.apiKey']);
    refused(() => decideUpdates(stored, { 'unknown.x': 1 }), 400);
    refused(() => decideUpdates(stored, { toString: 1 }), 400);
    refused(() => decideUpdates(stored, { 'gateway.auth.token': 'x' }), 403);
    refused(() => decideUpdates({ document: null }, { 'gateway.port': 2 }), 404);
  });
});

describe('gateway document: agents', () => {
  const entries = [
    { id: 'one', identity: { name: 'Ada', theme: 'coder' }, model: { primary: 'm' }, ignored: true },
    { id: 'two', name: 'Eve', default: true },
    { id: 'three' },
    { name: 'Ada' },
    {},
    'nonsense',
  ];

  it('are read from every form of the list, without duplicates', () => {
    const wanted = [
      {
        id: 'one',
        name: 'Ada',
        role: 'coder',
        config: { model: { primary: 'm' }, identity: { name: 'Ada', theme: 'coder' } },
      },
      { id: 'two', name: 'Eve', role: 'agent', config: { isDefault: true } },
      { id: 'three', name: 'three', role: 'agent', config: {} },
    ];
    expect(agentsOf({ agents: { list: entries } })).to.deep.equal(wanted);
    expect(agentsOf({ agents: entries })).to.deep.equal(wanted);
    const byId = { one: entries[0], two: entries[1], three: {} };
    expect(agentsOf({ agents: byId })).to.deep.equal(wanted);
    expect(agentsOf({ agents: { list: byId } })).to.deep.equal(wanted);
  });

  it('do not exist in documents without a list', () => {
    for (const document of [{}, { agents: 5 }, { agents: { list: 'x' } }, { agents: null }])
      expect(agentsOf(document)).to.deep.equal([]);
  });

  it('can be written, read back, renamed and removed, in every form of the list', () => {
    const config = { model: { primary: 'm' }, identity: { name: 'New One', theme: 't' }, workspace: 'left out' };
    for (const before of [
      {},
      { agents: {} },
      { agents: { list: entries } },
      { agents: entries },
      { agents: { list: {} } },
    ]) {
      const written = withAgent(before, { name: 'New One', config });
      const { workspace: _, ...kept } = config;
      expect(agentsOf(written).at(-1)).to.deep.equal({ id: 'new-one', name: 'New One', role: 't', config: kept });
      const renamed = withAgent(written, { name: 'Newer', config, before: 'New One' });
      expect(agentsOf(renamed)).to.have.length(agentsOf(written).length);
      expect(agentsOf(renamed).at(-1)).to.deep.include({ id: 'new-one', name: 'Newer' });
      expect(agentsOf(withoutAgent(renamed, 'Newer'))).to.deep.equal(agentsOf(before));
    }
  });

  it('stay separate if their names have the same slug', () => {
    const both = withAgent(withAgent({}, { name: 'a b', config: {} }), { name: 'a-b', config: {} });
    expect(agentsOf(both).map(({ id, name }) => ({ id, name }))).to.deep.equal([
      { id: 'a-b', name: 'a b' },
      { id: 'a-b-2', name: 'a-b' },
    ]);
    expect(agentsOf(withoutAgent(both, 'a-b')).map((agent) => agent.name)).to.deep.equal(['a b']);
    expect(slug('Data  Keeper #2')).to.equal('data-keeper-2');
    expect(slug('###')).to.equal('agent');
  });

  it('keep fields that do not belong to the gateway in their config', () => {
    expect(withGatewayKeys({ model: 1, tools: 2, own: 3 }, { model: 4 })).to.deep.equal({ own: 3, model: 4 });
  });

  it('are written by a decision only if a document is stored', () => {
    const agent = { name: 'ada', config: {}, template: 'developer' };
    const { message, extras } = refused(() => decideWriteAgent({ document: null }, 'agent-created', agent), 409);
    expect([message, extras.code].join(' ')).to.match(/PUT .*GATEWAY_NOT_CONFIGURED/);
    const [draft] = decideWriteAgent({ document: {} }, 'agent-created', agent);
    expect(draft?.data).to.deep.include({ cause: 'agent-created', agent_name: 'ada', template: 'developer' });
    expect(decideRemoveAgent({ document: null }, 'ada')).to.deep.equal([]);
    expect(decideRemoveAgent({ document: {} }, 'ada')).to.deep.equal([]);
    expect(decideRemoveAgent({ document: { agents: [{ name: 'ada' }] } }, 'ada')).to.have.length(1);
  });
});

describe('gateway document: on the log', () => {
  it('a change returns the new hash and the keys that it set', async () => {
    const agents = agentsMemory();
    const { hash } = await agents.store({ a: 1 });
    expect(hash).to.equal(hashOf('{"a":1}'));
    await agents.store({ a: 2 });
    const changed = agents.events('GatewayConfigChanged');
    expect(changed.map(({ stream, data }) => [stream, data.cause, data.updated_keys, data.fields])).to.deep.equal([
      ['gateway_config-1', 'update', ['*'], []],
      ['gateway_config-1', 'update', ['*'], []],
    ]);
    expect(await gatewayDocument(agents.world.process(), 1)).to.deep.equal({ a: 2 });
    expect(await gatewayDocument(agents.world.process(), 2)).to.equal(null);
  });

  it('an unreadable document is rejected with a remedy, and other failures are passed on', async () => {
    const failing = (error: Error) => ({ load: () => Promise.reject(error) }) as unknown as Commands;
    const unreadable = new EventUnreadableError(
      { type: 'GatewayConfigChanged', position: 7 } as LoggedEvent,
      'it is of a newer version',
    );
    const refusal = await gatewayDocument(failing(unreadable), 1).catch((error: unknown) => error);
    if (!(refusal instanceof AppError)) throw refusal;
    expect([refusal.status, refusal.cause]).to.deep.equal([422, unreadable]);
    expect(refusal.message).to.match(/^The stored gateway configuration cannot be read: .*newer version/);
    const other = await failureOf(gatewayDocument(failing(new Error('the disk is full')), 1));
    expect(other).to.equal('the disk is full');
  });

  it('an entry is restored only if a document is stored', () => {
    expect(decidePutBack({ document: null }, 'ada', undefined)).to.deep.equal([]);
    const [back] = decidePutBack({ document: { agents: { list: [{ id: 'ada' }] } } }, 'ada', { id: 'ada', model: 'm' });
    expect(back?.data).to.deep.include({
      document: { agents: { list: [{ id: 'ada', model: 'm' }] } },
      cause: 'agent-updated',
      agent_name: 'ada',
      fields: [],
    });
  });
});
