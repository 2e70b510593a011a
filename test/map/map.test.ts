/** The source is as the map says, and the map notices what is not. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { deviations, openOrders, printed, sameWord, sources, textOf } from './map.ts';

const files = sources();

describe('the map of the source files', () => {
  it('has a place for every file, and no other places', () => {
    expect(deviations(files)).to.deep.equal([]);
  });

  /** What a further file would be found to be. */
  const found = (...more: readonly string[]) => {
    const known = deviations(files);
    return deviations([...files, ...more]).filter((sentence) => !known.includes(sentence));
  };

  it('detects a file without a place', () => {
    expect(found('queries/agents/brains.ts')).to.deep.equal([
      'queries/agents/brains.ts: "brains" is no concern of agents',
    ]);
    expect(found('queries/robots/keys.ts')).to.deep.equal(['queries/robots/keys.ts: there is no group "robots"']);
    expect(found('queries/robots.ts')).to.deep.equal(['queries/robots.ts: there is no group "robots"']);
    expect(found('queries/agents/keys/more.ts')[0]).to.include('stands too deep');
    expect(found('api/helpers/more.ts')[0]).to.include('no floor and holds no mechanism');
    expect(found('shared/helpers.ts')[0]).to.include('not among the files of its room');
    expect(found('test/docs/example-resource/queries/texts.ts')[0]).to.include('the example has one file notes.ts');
  });
  it('detects a group that is both a file and a folder on one floor', () => {
    expect(found('queries/agents.ts')).to.deep.equal(['queries/agents: is a file and a folder']);
  });
  it('detects a singular next to its plural', () => {
    expect(found('infra/jobs/job.ts')).to.deep.equal(['infra/jobs: jobs stands beside job']);
    expect(found('infra/jobs/policy.ts')).to.deep.equal(['infra/jobs: policies stands beside policy']);
  });
  it('detects a removed concern, and a test without its subject', () => {
    const left = deviations(files.filter((file) => !file.endsWith('/liveness.ts')));
    expect(left).to.include('agents/liveness: stands on no floor');
    expect(found('test/projections/agents/souls.test.ts')).to.deep.equal([
      'test/projections/agents/souls: tests what does not stand in projections',
    ]);
  });
  it('treats forms of one word as the same word', () => {
    expect(
      [
        ['agent', 'agents'],
        ['policy', 'policies'],
        ['register', 'registration'],
        ['agents', 'agent-keys'],
      ].filter(([one = '', other = '']) => !sameWord(one, other)),
    ).to.deep.equal([]);
    expect(
      [
        ['memory', 'messages'],
        ['access-requests', 'activities'],
        ['setup', 'users'],
      ].filter(([one = '', other = '']) => sameWord(one, other)),
    ).to.deep.equal([]);
  });
  it('has one cache for all queries, keyed by owner, and none in routes', () => {
    const rooms = files.filter((file) => /^(queries|api\/routes|commands\/policies)\//.test(file));
    const withCaches = rooms.filter((file) =>
      /from 'lru-cache'|^(let|var) |^(export )?const \w+ = new Map\(\)/m.test(textOf(file)),
    );
    expect(withCaches).to.deep.equal(['queries/kept.ts']);
  });
  it('forbids limited lists whose order leaves open which rows are cut off', () => {
    expect(openOrders(files.filter((file) => file.startsWith('queries/')).map(textOf))).to.deep.equal([]);
    const found = openOrders([
      'SELECT * FROM t ORDER BY rank, created_at DESC LIMIT 10',
      'SELECT * FROM t ORDER BY rank, t.id DESC LIMIT 10',
      'SELECT row_number() OVER (PARTITION BY w ORDER BY updated_at) FROM t',
      "const FIRST = sql.raw('rank, due_date');",
      "const WHOLE = sql.raw('rank, id');",
      `SELECT * FROM t ORDER BY w, \${FIRST} LIMIT 1`,
      `SELECT * FROM t ORDER BY w, \${WHOLE} LIMIT 1`,
      "rows.orderBy('id').orderBy('changed_at', 'desc').limit(9);",
      "rows.orderBy('created_at').orderBy('t.id').limit(9);",
    ]);
    expect(found).to.deep.equal([
      ...['rank, created_at DESC', `w, \${FIRST}`, 'updated_at', `\${FIRST}`],
      "'changed_at', 'desc'",
    ]);
  });
  it('fits on a printed page', () => {
    const lines = printed(files).split('\n');
    expect(lines.filter((line) => line.length > 165)).to.deep.equal([]);
    expect(lines.length).to.be.lessThan(240);
  });
});

/** Those in braces are patterns of their own. */
const alternatives = (pattern: string): string[] => {
  const [, before, inside, after] = /^(.*?)\{([^}]*)\}(.*)$/.exec(pattern) ?? [];
  return inside === undefined ? [pattern] : inside.split(',').flatMap((one) => alternatives(`${before}${one}${after}`));
};

/** Those that mocha appends to a pattern that it takes for a name. */
const EXTENSIONS = ['js', 'cjs', 'mjs'];

describe('the configurations of mocha', () => {
  // mocha only warns, and takes a pattern with braces but without an asterisk for the name of a file.
  for (const config of readdirSync('.').filter((name) => name.startsWith('.mocharc.'))) {
    const { spec = [], require: required = [] } = JSON.parse(readFileSync(config, 'utf8')) as {
      readonly spec?: readonly string[];
      readonly require?: readonly string[];
    };

    it(`${config} names only tests that exist`, async () => {
      const lookUp: string = 'mocha/lib/cli/lookup-files.js';
      const { lookupFiles } = (await import(lookUp)) as {
        lookupFiles(pattern: string, extensions: readonly string[]): string[];
      };
      for (const pattern of spec) {
        expect(() => lookupFiles(pattern, EXTENSIONS), `mocha finds no file of ${pattern}`).not.to.throw();
        for (const one of alternatives(pattern))
          expect(() => lookupFiles(one, EXTENSIONS), `no file matches ${one}`).not.to.throw();
      }
      expect(required.filter((file) => !existsSync(file))).to.deep.equal([]);
    });
  }
});
