/** GitHub, played by a local server that is away, has had enough, repeats the token, or sends too much. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createGithub } from '../../../../infra/outgoing/github/client.ts';
import { GithubError } from '../../../../shared/ports/github/client.ts';
import { fixture } from '../../../support/fixture.ts';
import { GITHUB_TOKEN } from '../../../support/github.ts';
import { listen } from '../../../support/listen.ts';
import { errorOf } from '../../event-log/conformance/subject.ts';

const REPO = 'acme/web';

describe('requests to GitHub', () => {
  let answer: RequestListener;
  let asked = 0;
  const server = fixture(() =>
    listen((req, res) => {
      asked++;
      answer(req, res);
    }),
  );
  beforeEach(() => {
    asked = 0;
  });

  const sends =
    (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
    (_req, res) =>
      res.writeHead(status, headers).end(body);
  const githubAt = (
    githubApiUrl: string,
    now: () => number = Date.now,
    githubToken: string | undefined = GITHUB_TOKEN,
  ) => createGithub({ githubApiUrl, githubToken, githubDefaultRepo: undefined, githubTimeoutMs: 2_000 }, now);
  const failureOf = async (work: Promise<unknown>): Promise<GithubError> => {
    const error = await errorOf(work);
    expect(error).to.be.instanceOf(GithubError);
    return error as GithubError;
  };
  const list = (github = githubAt(server.url)) => github.issues(REPO, { state: 'open', perPage: 1 });

  it('are not sent without a token', async () => {
    const github = createGithub({
      ...{ githubApiUrl: server.url, githubToken: undefined, githubDefaultRepo: REPO, githubTimeoutMs: 2_000 },
    });
    expect(github).to.include({ configured: false, defaultRepo: REPO });
    const { fault, message } = await failureOf(list(github));
    expect(fault).to.equal('unset');
    expect(message).to.include('GITHUB_TOKEN');
    expect(asked).to.equal(0);
  });

  it('report a missing response, without the address', async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const { port } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    const { fault, message } = await failureOf(list(githubAt(`http://127.0.0.1:${port}`)));
    expect(fault).to.equal('offline');
    expect(message)
      .to.match(/ECONNREFUSED/)
      .and.not.include('127.0.0.1');
  });

  it('wait until the time that GitHub names, and no longer', async () => {
    let now = 1_800_000_000_000;
    const github = githubAt(server.url, () => now);
    const spent = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(now / 1_000 + 90) };
    answer = sends(403, '{}', spent);
    expect(await failureOf(list(github))).to.include({ fault: 'limited', retryAfter: 90 });
    answer = sends(200, '[]');
    now += 89_000;
    expect(await failureOf(list(github))).to.include({ fault: 'limited', retryAfter: 1 });
    expect(asked).to.equal(1);
    now += 1_000;
    expect(await list(github)).to.deep.equal({ issues: [], last: undefined, more: false });
    answer = sends(429, '{}');
    expect(await failureOf(list(github)), 'without a time').to.include({ fault: 'limited', retryAfter: 60 });
    now += 60_000;
    answer = sends(403, '{}', { 'retry-after': '999999' });
    expect(await failureOf(list(github)), 'an hour at most').to.include({ retryAfter: 3_600 });
  });

  it('distinguish a rejection from a rate limit, and never repeat the token', async () => {
    answer = sends(403, JSON.stringify({ message: `no, ${GITHUB_TOKEN}` }), { 'x-ratelimit-remaining': '7' });
    const { fault, message } = await failureOf(list());
    expect(fault).to.equal('refused');
    expect(message).to.include('no, …').and.not.include(GITHUB_TOKEN);
    answer = sends(401, '{}');
    expect((await failureOf(list())).message).to.include('GITHUB_TOKEN');
    answer = sends(410, '{}');
    expect(await failureOf(list())).to.include({ fault: 'missing' });
  });

  it('read no more than 10 MB, and only valid issues', async () => {
    answer = (_req, res) => {
      res.writeHead(200);
      const more = () => {
        while (res.write('x'.repeat(100_000)));
      };
      res.on('drain', more);
      more();
    };
    expect((await failureOf(list())).message).to.include('10000000 bytes');
    answer = sends(200, '[{"number":1}]');
    expect((await failureOf(list())).message).to.include('other than a list of issues');
  });

  it('are aborted together with the work that they belong to', async () => {
    answer = () => undefined;
    const stop = new AbortController();
    const work = githubAt(server.url).issues(REPO, { state: 'open', perPage: 1 }, stop.signal);
    stop.abort(new Error('the process stops'));
    const error = await work.catch((reason) => reason);
    expect(error.message).to.equal('the process stops');
  });

  it('return branch URLs of the web interface', () => {
    expect(githubAt('https://api.github.com').branchUrl(REPO, 'x')).to.equal('https://github.com/acme/web/tree/x');
    expect(githubAt('https://ghe.acme.org/api/v3').branchUrl(REPO, 'x')).to.equal(
      'https://ghe.acme.org/acme/web/tree/x',
    );
  });
});
