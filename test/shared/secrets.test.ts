/** Secrets in values of clients: which names mean one, what is masked, what comes back, what the log holds. Pure. */
import { expect } from 'chai';
import fc from 'fast-check';
import { AppError } from '../../shared/errors.ts';
import { holdsSealedSecrets, type SecretsSealed, sealSecrets, unsealSecrets } from '../../shared/events/seal.ts';
import { type SecretName, secretName } from '../../shared/secret-names.ts';
import { MASK, masked, restored } from '../../shared/secrets.ts';

const NAMES: Readonly<Record<SecretName | 'none', readonly string[]>> = {
  strong: [
    'password',
    'PASSWORD',
    'dbPassword',
    'db_passwd',
    'passphrase',
    'secret',
    'clientSecret',
    'credentials',
    'apiKey',
    'api_key',
    'api-key',
    'api key',
    'X-Api-Key',
    'OPENAI_API_KEY',
    'privateKey',
    'access_key',
    'accesskey',
    'signingKey',
    'encryption_key',
    'apiKeys',
  ],
  token: ['token', 'botToken', 'ACCESS_TOKEN', 'maxTokens', 'tokens'],
  weak: [
    'pwd',
    'PWD',
    'db_pwd',
    'dbpwd',
    'pass',
    'userPass',
    'db_pass',
    'auth',
    'basicAuth',
    'x-auth',
    'oauth2',
    'authorization',
    'Authorization',
    'Proxy-Authorization',
    'bearer',
    'jwt',
    'cookie',
    'key',
    'keys',
    'hmacKey',
  ],
  none: [
    'author',
    'authority',
    'compass',
    'bypass',
    'passed',
    'pass_rate',
    'monkey',
    'keyboard',
    'publicKey',
    'public_key',
    'primaryKey',
    'sort_key',
    'session_key',
    'sessionKey',
    'keyId',
    'key_prefix',
    'model',
    'name',
    '',
    'auth_url',
    'authMethod',
    'seecret',
  ],
};

/** Samples are put together here so that no scanner takes this file for a leak. */
const URL_WITH_PASSWORD = 'https://ada:'.concat('hunter2', '@example.org/x');
const KEY = 'sk'.concat('-ant-api03-', 'Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8');

const refusal = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError && error.status === 400) return error.message;
    throw error;
  }
  throw new Error('was not refused');
};

describe('secrets: names', () => {
  for (const [level, names] of Object.entries(NAMES)) {
    for (const name of names) {
      it(`${JSON.stringify(name)}: ${level}`, () => {
        expect(secretName(name) ?? 'none').to.equal(level);
      });
    }
  }
});

describe('secrets: masks', () => {
  it('hide texts under such names, including nested ones, and numbers under unambiguous names', () => {
    expect(
      masked({
        pwd: 'a',
        tokens: ['a', { x: 'b', y: 5 }],
        maxTokens: 4096,
        password: 123456,
        auth: { mode: 'basic', user: 'ada', value: 'a', deeper: { x: 'b' } },
        empty: { secret: '', token: null, key: true },
        note: 'plain',
      }),
    ).to.deep.equal({
      pwd: MASK,
      tokens: [MASK, { x: MASK, y: 5 }],
      maxTokens: 4096,
      password: MASK,
      auth: { mode: 'basic', user: 'ada', value: MASK, deeper: { x: MASK } },
      empty: { secret: '', token: null, key: true },
      note: 'plain',
    });
  });

  it('hide credentials in texts, and leave the rest of the text', () => {
    expect(masked({ endpoint: URL_WITH_PASSWORD, list: [`use ${KEY} now`] })).to.deep.equal({
      endpoint: `https://ada:${MASK}@example.org/x`,
      list: [`use ${MASK} now`],
    });
    // Logs from before there were bounds hold such values.
    expect(JSON.stringify(masked(JSON.parse(`${'['.repeat(4_000)}"x"${']'.repeat(4_000)}`)))).to.match(
      /^\[{151}"--------"\]{151}$/,
    );
    expect(masked('postgres://u:'.concat('p@ss', '@db/x'))).to.equal(`postgres://u:${MASK}@db/x`);
    expect(masked('PWD='.concat('abcd1234', ' run'))).to.equal(`PWD=${MASK} run`);
    expect(masked('Authorization: Basic '.concat('dXNlcjpwYXNz'))).to.equal(`Authorization: Basic ${MASK}`);
    for (const text of ['https://example.org:8080/a@b', 'ada@example.org', 'the key: understanding', 'auth: required1'])
      expect(masked(text), text).to.equal(text === 'auth: required1' ? `auth: ${MASK}` : text);
  });

  it('of a masked value change nothing further', () => {
    const once = masked({ a: URL_WITH_PASSWORD, apiKey: 'x', b: `api_key=${'abcd1234'}` });
    expect(masked(once)).to.deep.equal(once);
  });
});

describe('secrets: sent back', () => {
  const stored = {
    apiKey: 'k1',
    url: URL_WITH_PASSWORD,
    pins: { password: 7 },
    keys: ['a', 'b', 'b'],
    servers: [
      { id: 'x', token: 'tx' },
      { id: 'y', token: 'ty' },
    ],
  };
  const shown = masked(stored) as typeof stored;

  it('keep what is stored', () => {
    expect(restored(shown, stored, 'config')).to.deep.equal(stored);
    const { servers } = shown;
    expect(restored({ ...shown, servers: servers.toReversed() }, stored, 'config')).to.deep.equal({
      ...stored,
      servers: stored.servers.toReversed(),
    });
    expect(restored({ keys: [...shown.keys, 'new'] }, stored, 'config')).to.deep.equal({
      keys: ['a', 'b', 'b', 'new'],
    });
    expect(restored({ apiKey: 'new', url: 'https://example.org' }, stored, 'config')).to.deep.equal({
      apiKey: 'new',
      url: 'https://example.org',
    });
  });

  it('are refused with their path if nothing is hidden there', () => {
    expect(refusal(() => restored({ other: { apiKey: MASK } }, stored, 'config'))).to.match(/^config\.other\.apiKey: /);
    expect(refusal(() => restored({ apiKey: MASK }, undefined, 'config'))).to.match(/^config\.apiKey: /);
    // Its host is another one: the password must not go there.
    const moved = `https://ada:${MASK}@elsewhere.example/x`;
    expect(refusal(() => restored({ url: moved }, stored, 'config'))).to.match(/^config\.url: /);
    expect(refusal(() => restored({ fresh: moved }, stored, 'config'))).to.match(/^config\.fresh: /);
    // Which of the three is meant nobody can tell.
    expect(refusal(() => restored({ keys: [MASK] }, stored, 'config'))).to.match(/^config\.keys\.0: /);
    expect(refusal(() => restored({ servers: [{ id: 'z', token: MASK }] }, stored, 'config'))).to.match(
      /servers\.0\.token/,
    );
  });

  it('never reappear under a name that is shown', () => {
    expect(restored({ note: MASK, apiKey2: 'x' }, { note: 'n', ...stored }, 'config')).to.deep.equal({
      note: MASK,
      apiKey2: 'x',
    });
    expect(
      refusal(() =>
        restored(
          {
            servers: [
              { id: 'x', note: MASK, token: MASK },
              { id: 'x', secret: MASK },
            ],
          },
          stored,
          'config',
        ),
      ),
    ).to.match(/servers\.1\.secret/);
  });
});

describe('secrets: sealed', () => {
  const key = Buffer.alloc(32, 7);
  const keys = { find: async () => key, findOrCreate: async () => key };
  const json = fc.object({
    key: fc.oneof(fc.constantFrom('password', 'sealed', 'box', 'shown', 'person', 'auth', 'token', 'a'), fc.string()),
    values: [
      fc.string(),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.constantFrom('secrets', MASK, URL_WITH_PASSWORD, KEY),
    ],
    maxDepth: 4,
  });

  it('are unsealed unchanged, whatever they look like', async () => {
    await fc.assert(
      fc.asyncProperty(json, async (given) => {
        const value = JSON.parse(JSON.stringify(given)) as unknown;
        const sealed = JSON.parse(JSON.stringify(await sealSecrets(keys, 'p', 'e/config', value))) as unknown;
        const open = holdsSealedSecrets(sealed) ? unsealSecrets(key, 'e/config', sealed) : sealed;
        expect(open).to.deep.equal(value);
      }),
    );
  });

  it('are not in what is written; without the key, the rest remains', async () => {
    const value = { model: 'm', apiKey: 'very-private', nested: [{ url: URL_WITH_PASSWORD }] };
    const sealed = (await sealSecrets(keys, 'p', 'e/config', { inner: value, token: 't' })) as SecretsSealed;
    expect(JSON.stringify(sealed))
      .to.include('"model":"m"')
      .and.not.to.match(/very-private|hunter2/);
    expect(unsealSecrets(undefined, 'e/config', sealed)).to.deep.equal({
      inner: { model: 'm', apiKey: null, nested: [{ url: null }] },
      token: null,
    });
    expect(() => unsealSecrets(key, 'e/other', sealed)).to.throw();
  });
});
