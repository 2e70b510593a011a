/** Tasks before and since a change, through HTTP; the numbers themselves are tested on the query. */
import { expect } from 'chai';
import { regressionResponse } from '../../../shared/contract/tasks/regression.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, call, startTestService } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';

describe('GET /api/tasks/regression', () => {
  const base = fixture(startTestService);

  const get = (query: string) => call(base, 'GET', `/api/tasks/regression${query}`);
  const params = async (query: string) => {
    const body = conforms(regressionResponse, await get(query));
    return regressionResponse.parse(body).params;
  };

  it('accepts seconds, a date, or the alternative parameter name', async () => {
    const week = 604_800;
    expect(await params('?beta_start=1700000000.9')).to.deep.equal({
      beta_start: 1_700_000_000,
      lookback_seconds: week,
    });
    expect((await params('?beta_start=2024-01-01T00:00:00Z')).beta_start).to.equal(1_704_067_200);
    expect((await params('?beta_start=%20&cutover=5')).beta_start).to.equal(5);
    for (const [given, used] of [
      ['90.7', 90],
      ['1', 60],
      ['99999999', 2_592_000],
      ['x', week],
      ['', week],
    ] as const) {
      expect((await params(`?beta_start=5&lookback_seconds=${given}`)).lookback_seconds, given).to.equal(used);
    }
  });

  it('rejects invalid and future times', async () => {
    for (const query of ['', '?beta_start=', '?beta_start=0', '?beta_start=-5', '?cutover=soon', '?beta_start=1e400']) {
      const { status, body } = await get(query);
      expect(status, query).to.equal(400);
      expect(body.error, query).to.match(/beta_start/);
    }
    const body = bodyOf(await get(`?beta_start=${Math.floor(Date.now() / 1000) + 100}`), 400);
    expect(body.error).to.match(/future/);
  });
});
