/** The log over time: counts and positions per part of a span, for admins of the deployment. */
import { expect } from 'chai';
import { type TimelineResponse, timelineResponse } from '../../../shared/contract/history/timeline.ts';
import type { LoggedEvent } from '../../../shared/ports/event-log.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

describe('/api/history/timeline', function () {
  this.timeout(120_000);
  const world = fixture(startAuthWorld);

  let admin: string;
  let all: LoggedEvent[];
  before(async () => {
    admin = await world.makeSession({ username: 'thea', role: 'admin' });
    all = [];
    for await (const page of world.service.core.eventLog.readAll()) all.push(...page);
  });
  const timeline = async (query: string): Promise<TimelineResponse> => {
    const body = bodyOf(await world.ask('GET', `/api/history/timeline${query}`, { as: admin }));
    return timelineResponse.parse(body);
  };
  const timeOf = (event: LoggedEvent | undefined) => Number(event?.meta.at);

  it('counts every event once, whatever the number of parts', async () => {
    const until = Math.floor(timeOf(all.at(-1)) / 1_000) + 1;
    for (const bins of [1, 7, 160, 400]) {
      const { bins: parts, first } = await timeline(`?bins=${bins}&until=${until}`);
      expect(parts).to.have.length(bins);
      expect(first).to.equal(Math.floor(timeOf(all[0]) / 1_000));
      // Sign-ins of other tests may follow in the same second.
      expect(parts.reduce((sum, one) => sum + one.count, 0)).to.be.at.least(all.length);
      expect(parts.at(-1)?.position).to.be.at.least(all.at(-1)?.position ?? Number.NaN);
    }
  });

  it('returns the position of the last event of each part', async () => {
    const [from, to] = [timeOf(all[0]), timeOf(all.at(-1))].map((ms) => new Date(ms).toISOString());
    const { bins } = await timeline(`?since=${from}&until=${to}&bins=5`);
    const width = (timeOf(all.at(-1)) - timeOf(all[0])) / 5;
    for (const [n, part] of bins.entries()) {
      const end = timeOf(all[0]) + (n + 1) * width;
      const within = all.filter((event) => (n === 4 ? timeOf(event) <= end : timeOf(event) < end));
      expect(part.position).to.equal(within.at(-1)?.position ?? 0);
    }
  });

  it('is empty before the first event', async () => {
    const { bins } = await timeline('?since=2001-01-01T00:00:00Z&until=2001-02-01T00:00:00Z&bins=3');
    expect(bins.map(({ count, position }) => [count, position])).to.deep.equal([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
  });

  it('rejects a range that ends before it starts', async () => {
    const { status, body } = await world.ask(
      'GET',
      '/api/history/timeline?since=2002-01-01T00:00:00Z&until=2001-01-01T00:00:00Z',
      { as: admin },
    );
    expect(status).to.equal(400);
    expect(body.error).to.match(/^since: must not be after until/);
  });
});
