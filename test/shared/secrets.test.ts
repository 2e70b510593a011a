/** Secrets in values of clients: which names mean one, what is masked, what comes back, what the log holds. Pure. */
import { expect } from 'chai';
import fc from 'fast-check';
import { AppError } from '../../shared/errors.ts';
import {
  holdsSealedSecrets,
  type SecretsSealed,
  sealSecrets,
  unsealSecrets,
} from '../../shared/event-store/sealed-values.ts';
import { type SecretName, secretName } from '../../shared/secret-names.ts';
import { maskedAddresses } from '../../shared/secret-texts.ts';
import { MASK, masked, restored } from '../../shared/secrets.ts';

/** By kind, separated by commas; the empty name is among the harmless ones. */
const NAMES: Readonly<Record<SecretName | 'none', string>> = {
  strong:
    'password, PASSWORD, dbPassword, db_passwd, passphrase, secret, clientSecret, credentials, apiKey, ' +
    'api_key, api-key, api key, X-Api-Key, OPENAI_API_KEY, privateKey, access_key, accesskey, signingKey, ' +
    'encryption_key, apiKeys, pin, PIN, userPin, pin_code, pinCode, otp, login_otp, totp, otpCode',
  token: 'token, botToken, ACCESS_TOKEN, maxTokens, tokens',
  weak:
    'pwd, PWD, db_pwd, dbpwd, pass, userPass, db_pass, auth, basicAuth, x-auth, oauth2, authorization, ' +
    'Authorization, Proxy-Authorization, bearer, jwt, cookie, cookies, sessionCookie, cookieJar, ' +
    'cookie_value, cookieHeader, Set-Cookie, pw, db_pw, dbPw, key, keys, hmacKey',
  none:
    'author, authority, compass, bypass, passed, pass_rate, monkey, keyboard, publicKey, public_key, ' +
    'primaryKey, sort_key, session_key, sessionKey, keyId, key_prefix, model, name, , auth_url, authMethod, ' +
    'seecret, spinning, pinned, pin_version, pins, pinterest, gpio_pin, mapPin, otp_length, laptop, ' +
    'cookieName, cookie_path, cookieSameSite, cookie_max_age, cookiecutter, pwa',
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
    for (const name of names.split(', ')) {
      it(`${JSON.stringify(name)}: ${level}`, () => {
        expect(secretName(name) ?? 'none').to.equal(level);
      });
    }
  }
});

describe('secrets: masks', () => {
  it('hide texts under secret names, including nested ones, and numbers under unambiguous names', () => {
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

  it('hide values whose name is in a sibling field, and show the name', () => {
    expect(
      masked({
        env: [
          { name: 'API_KEY', value: 'a' },
          { name: 'LOG_LEVEL', value: 'debug' },
          { key: 'DB_PASSWORD', value: 'b' },
          { key: 'hidden as before', value: 'c' },
          { name: 'MAX_TOKENS', value: '4096' },
          { name: 'PIN', value: 1234 },
          { name: 'cookie', description: 'plain', default: 'd' },
        ],
        headers: [{ header: 'X-Api-Key', value: 'e' }],
        one: { name: 'password reset', title: 'plain', value: { length: 'f', rounds: 3 } },
        prose: { name: 'password '.repeat(20), value: 'plain' },
      }),
    ).to.deep.equal({
      env: [
        { name: 'API_KEY', value: MASK },
        { name: 'LOG_LEVEL', value: 'debug' },
        { key: 'DB_PASSWORD', value: MASK },
        { key: MASK, value: 'c' },
        { name: 'MAX_TOKENS', value: '4096' },
        { name: 'PIN', value: MASK },
        { name: 'cookie', description: 'plain', default: MASK },
      ],
      headers: [{ header: 'X-Api-Key', value: MASK }],
      one: { name: 'password reset', title: 'plain', value: { length: MASK, rounds: 3 } },
      prose: { name: 'password '.repeat(20), value: 'plain' },
    });
  });

  it('hide the second of two entries whose first names it, but no lists of names', () => {
    const pairs = [
      ['X-Api-Key', 'a'],
      ['Authorization', 'Bearer abcdef'],
      ['authorization', 'Basic dXNlcjpwYXNz'],
      ['Cookie', 'sid=a'],
      ['GITHUB_TOKEN', 'b'],
      ['authToken', 'c'],
      ['password', 'd'],
      ['token', 'a1b2c3d4'],
      ['pin', 1234],
    ];
    expect(masked({ headers: pairs, one: pairs[0] })).to.deep.equal({
      headers: pairs.map(([name]) => [name, MASK]),
      one: ['X-Api-Key', MASK],
    });
    const plain = {
      needs: ['OPENAI_API_KEY', 'GITHUB_TOKEN'],
      skills: ['auth', 'billing'],
      scopes: ['token', 'profile'],
      vote: ['pass', 'fail'],
      limit: ['max_tokens', 4096],
      also: ['max-tokens', '4096'],
      headers: [
        ['Accept', 'text/html'],
        ['X-Api-Key', ''],
      ],
      three: ['password', 'reset', 'mail'],
      prose: ['password '.repeat(20), 'plain'],
      nested: ['auth', { mode: 'basic' }],
    };
    expect(masked(plain)).to.deep.equal(plain);
    expect(masked(masked({ headers: pairs }))).to.deep.equal(masked({ headers: pairs }));
  });

  it('hide option values and assigned values in a list', () => {
    const args = ['run', '--token', 'a', '-pw', 'b', '--pin', 1234, '--token', '--verbose', '--max-tokens', '4096'];
    expect(masked({ args })).to.deep.equal({
      args: ['run', '--token', MASK, '-pw', MASK, '--pin', MASK, '--token', '--verbose', '--max-tokens', '4096'],
    });
    expect(
      masked({
        args: ['--password=short', '--spinning', 'x', '--pinned', 'y', '--', 'token', 'z'],
        env: ['API_KEY=a', 'LOG_LEVEL=debug', 'Cookie: sid=a'],
      }),
    ).to.deep.equal({
      args: [`--password=${MASK}`, '--spinning', 'x', '--pinned', 'y', '--', 'token', 'z'],
      env: [`API_KEY=${MASK}`, 'LOG_LEVEL=debug', `Cookie: ${MASK}`],
    });
    expect(masked(masked({ args }))).to.deep.equal(masked({ args }));
  });

  it('hide the secret parts of a URL', () => {
    const path = 'T0AAAAAAA/B0BBBBBBB/'.concat('abcdefghijklmnop');
    const key = '0123456789abcdef'.repeat(2);
    for (const [url, shown] of [
      [`https://hooks.slack.com/services/${path}`, `https://hooks.slack.com/services/${MASK}`],
      [`https://${key}@o1.ingest.sentry.io/5`, `https://${MASK}@o1.ingest.sentry.io/5`],
      [`https://${key}:${key}@o1.ingest.sentry.io/5`, `https://${MASK}:${MASK}@o1.ingest.sentry.io/5`],
      ['https://x.example.org/c?sv=1&sig=abc%3D&se=2', `https://x.example.org/c?sv=1&sig=${MASK}&se=2`],
    ] as const)
      expect(masked({ url }), url).to.deep.equal({ url: shown });
  });

  it('hide credentials in texts, and keep the rest of the text', () => {
    expect(masked({ endpoint: URL_WITH_PASSWORD, list: [`use ${KEY} now`] })).to.deep.equal({
      endpoint: `https://ada:${MASK}@example.org/x`,
      list: [`use ${MASK} now`],
    });
    // Logs from before there were bounds hold such values.
    expect(JSON.stringify(masked(JSON.parse(`${'['.repeat(4_000)}"x"${']'.repeat(4_000)}`)))).to.match(
      /^\[{151}"--------"\]{151}$/,
    );
    // The whole of a private key, not only its first line.
    const body = `Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00AB\n\n${'MIIEpAIBAAKCAQEA\n'.repeat(3)}`;
    const pem = (kind: string) => `-----${kind} RSA PRIVATE KEY-----`;
    expect(masked(`a ${pem('BEGIN')}\n${body}${pem('END')} b`)).to.equal(`a ${MASK}${pem('END')} b`);
    expect(masked(`${pem('BEGIN')}\n${body}`), 'cut off').to.equal(MASK);
    expect(masked('postgres://u:'.concat('p@ss', '@db/x'))).to.equal(`postgres://u:${MASK}@db/x`);
    expect(masked('PWD='.concat('abcd1234', ' run'))).to.equal(`PWD=${MASK} run`);
    expect(masked('Authorization: Basic '.concat('dXNlcjpwYXNz'))).to.equal(`Authorization: Basic ${MASK}`);
    for (const text of ['https://example.org:8080/a@b', 'ada@example.org', 'the key: understanding', 'auth: required1'])
      expect(masked(text), text).to.equal(text === 'auth: required1' ? `auth: ${MASK}` : text);
  });

  it('leave a masked value unchanged', () => {
    const once = masked({ a: URL_WITH_PASSWORD, apiKey: 'x', b: `api_key=${'abcd1234'}` });
    expect(masked(once)).to.deep.equal(once);
  });
});

describe('secrets: masks sent back', () => {
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

  it('keep the stored secrets', () => {
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

  it('are rejected with their path if nothing is hidden there', () => {
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

  it('keep a secret next to its name or after its option, even if that has moved', () => {
    const stored = {
      env: [
        { key: 'API_KEY', value: 'a' },
        { key: 'DB_PASSWORD', value: 'b' },
        { name: 'PIN', value: 1234 },
      ],
      args: ['--token', 'c', '--password', 'd', '--verbose'],
      headers: [
        ['X-Api-Key', 'e'],
        ['token', 'f1f2f3f4'],
        ['Accept', 'text/html'],
      ],
      url: 'https://x.example.org/?sig=abc',
    };
    const shown = masked(stored) as typeof stored;
    expect(restored(shown, stored, 'config')).to.deep.equal(stored);
    const [one, two, three] = shown.env;
    expect(restored({ env: [two, { key: 'LOG_LEVEL', value: 'x' }, one] }, stored, 'config')).to.deep.equal({
      env: [stored.env[1], { key: 'LOG_LEVEL', value: 'x' }, stored.env[0]],
    });
    expect(restored({ env: [three] }, stored, 'config')).to.deep.equal({ env: [stored.env[2]] });
    expect(restored({ args: ['--quiet', '--password', MASK, '--token', MASK, '-v'] }, stored, 'config')).to.deep.equal({
      args: ['--quiet', '--password', 'd', '--token', 'c', '-v'],
    });
    expect(restored({ args: ['--password', MASK] }, stored, 'config')).to.deep.equal({ args: ['--password', 'd'] });
    const [key, token, accept] = shown.headers;
    expect(restored({ headers: [accept, token, key] }, stored, 'config')).to.deep.equal({
      headers: stored.headers.toReversed(),
    });
    expect(restored({ headers: [token] }, stored, 'config')).to.deep.equal({ headers: [stored.headers[1]] });
    for (const [next, says] of [
      [{ args: ['--secret', MASK] }, /^config\.args\.1: /],
      [{ headers: [['X-Auth-Token', MASK]] }, /^config\.headers\.0\.1: /],
      [{ env: [{ key: 'OTHER_KEY', value: MASK }] }, /^config\.env\.0\.value: /],
      [{ more: { name: 'API_KEY', value: MASK } }, /^config\.more\.value: /],
      [{ url: `https://elsewhere.example/?sig=${MASK}` }, /^config\.url: /],
      [{ fresh: `https://x.example.org/?sig=${MASK}` }, /^config\.fresh: /],
    ] as const)
      expect(
        refusal(() => restored(next, stored, 'config')),
        JSON.stringify(next),
      ).to.match(says);
    const pair = { one: { name: 'API_KEY', value: 'a' } };
    const renamed = { one: { name: 'LOG_LEVEL', value: MASK } };
    expect(
      refusal(() => restored(renamed, pair, 'config')),
      'a name that is shown',
    ).to.match(/^config\.one\.value: /);
  });

  it('never reveal a secret under a name that is shown', () => {
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

describe('secrets: addresses in logs and errors', () => {
  const masks: Readonly<Record<string, string>> = {
    'postgres://app:pw@db:5432/x failed': 'postgres://--------@db:5432/x failed',
    'redis://k3y@host/0': 'redis://--------@host/0',
    'redis://:a@host': 'redis://--------@host',
    'esdb://admin:changeit@one:2113,two:2113?tls=true': 'esdb://--------@one:2113,two:2113?tls=true',
    'postgres://app:a/b@c?d#e@db/x': 'postgres://--------@db/x',
    'postgres://user@127.0.0.1/x': 'postgres://--------@127.0.0.1/x',
    '{"err":"mysql://a:b@c","next":"d@e"}': '{"err":"mysql://--------@c","next":"d@e"}',
    'GET /hook?key=a&sig=b&limit=5&max_tokens=9': 'GET /hook?key=--------&sig=--------&limit=5&max_tokens=9',
    'https://h/p?token=t#access_token=u': 'https://h/p?token=--------#access_token=--------',
    'postgres://h/x?password=p;sslpassword=q': 'postgres://h/x?password=--------;sslpassword=--------',
  };
  for (const [text, shown] of Object.entries(masks))
    it(`are masked at any length: ${text}`, () => {
      expect(maskedAddresses(text)).to.equal(shown);
      expect(maskedAddresses(shown), 'once').to.equal(shown);
    });

  it('leave addresses without secrets, and other texts', () => {
    const plain = [
      ...[
        'http://127.0.0.1:3000/@scope/name',
        'https://example.org/a@b',
        'mail ann@example.org',
        'http://h:80/x?y=z@w',
      ],
      ...['why? key=value', 'ssh git@example.org', 'a://b c@d', '/api/agents?limit=5&session_key=agent:main'],
    ];
    for (const text of plain) expect(maskedAddresses(text)).to.equal(text);
  });

  it('take linear time', () => {
    for (const part of ['a://', 'a://b:', '?key=', 'postgres://x'])
      expect(maskedAddresses(part.repeat(50_000)).length).to.be.above(0);
  });
});

describe('secrets: encryption', () => {
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

  it('returns values unchanged, whatever their form', async () => {
    await fc.assert(
      fc.asyncProperty(json, async (given) => {
        const value = JSON.parse(JSON.stringify(given)) as unknown;
        const sealed = JSON.parse(JSON.stringify(await sealSecrets(keys, 'p', 'e/config', value))) as unknown;
        const open = holdsSealedSecrets(sealed) ? unsealSecrets(key, 'e/config', sealed) : sealed;
        expect(open).to.deep.equal(value);
      }),
    );
  });

  it('removes secrets from the written data; without the key, the rest is still readable', async () => {
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

describe('masking a large value', () => {
  /** The same value, which counts how often its entries are read. */
  function counted(value: unknown, count: () => void): unknown {
    if (typeof value !== 'object' || value === null) return value;
    const inner = Object.entries(value).map(([name, one]) => [name, counted(one, count)]);
    const copy = Array.isArray(value) ? inner.map(([, one]) => one) : Object.fromEntries(inner);
    return new Proxy(copy as object, {
      get(target, name) {
        count();
        return Reflect.get(target, name) as unknown;
      },
    });
  }
  const list = (length: number, one: (n: number) => unknown) => Array.from({ length }, (_, n) => one(n));
  const SHAPES: Readonly<Record<string, (length: number) => unknown>> = {
    texts: (length) => list(length, (n) => `text ${n}`),
    options: (length) => list(length, (n) => (n % 2 === 0 ? '--token' : `abc123${n}`)),
    pairs: (length) => list(length, (n) => [`X-Api-Key-${n}`, 'value']),
    'named values': (length) => list(length, (n) => ({ name: `API_KEY_${n}`, value: 'value', key: 'x' })),
    fields: (length) => Object.fromEntries(list(length, (n) => [`secret_${n}`, `value ${n}`]) as [string, string][]),
    'nested fields': (length) =>
      Object.fromEntries(list(length, (n) => [`token${n}`, { a: { b: 'c' } }]) as [string, object][]),
  };
  for (const [name, shape] of Object.entries(SHAPES)) {
    it(`reads each of its ${name} a limited number of times, however many there are`, () => {
      const readsOf = (length: number) => {
        let reads = 0;
        masked(counted(shape(length), () => reads++));
        return reads;
      };
      expect(readsOf(2_000)).to.be.at.most(2.1 * readsOf(1_000));
      expect(readsOf(1_000)).to.be.at.most(30_000);
    });
  }
});
