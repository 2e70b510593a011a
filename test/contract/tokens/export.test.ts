import { expect } from 'chai';
import { tokenExportResponse } from '../../../shared/contract/tokens/usage.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';
import { usage } from '../../support/worlds/tokens.ts';

const PATH = '/api/tokens?action=export';

describe('a token usage export', () => {
  const world = fixture(startTasksWorld);

  const { ask } = world;

  it('contains all reports as JSON, however many, with their exact sums', async () => {
    const reports = Array.from({ length: 1_000 }, (_, n) => usage({ inputTokens: n }));
    for (let n = 0; n < 2; n++) await ask('POST', '/api/tokens/batch', { reports });
    const reply = await ask('GET', PATH);
    conforms(tokenExportResponse, reply);
    const date = new Date().toISOString().slice(0, 10);
    expect(reply.headers.get('content-disposition')).to.equal(`attachment; filename="token-usage-all-${date}.json"`);
    const all = reply.body.usage as { id: string; timestamp: number }[];
    const stats = (await ask('GET', '/api/tokens?action=stats')).body;
    expect(all.length).to.equal(stats.recordCount).and.at.least(2_000);
    expect(new Set(all.map(({ id }) => id)).size).to.equal(all.length);
    const times = all.map(({ timestamp }) => timestamp);
    expect(times).to.deep.equal([...times].sort((a, b) => b - a));
    expect(reply.body.summary).to.deep.equal(stats.summary);
    expect(reply.body.models).to.deep.equal(stats.models);
  });

  it('contains a CSV line for each report, and no text that a spreadsheet would run', async () => {
    const texts = { model: '=1+1', sessionId: '@x, "y"\n:z', operation: '-2', inputTokens: 1, outputTokens: 1 };
    const { record } = (await ask('POST', '/api/tokens', usage({ ...texts, duration: 7 }))).body;
    const reply = await ask('GET', `${PATH}&format=csv&timeframe=hour`);
    expect(reply.status).to.equal(200);
    expect(reply.headers.get('content-type')).to.equal('text/csv; charset=utf-8');
    expect(reply.headers.get('content-disposition')).to.match(/"token-usage-hour-[\d-]{10}\.csv"$/);
    const at = new Date(record.timestamp).toISOString();
    const begin = [
      'timestamp,agentName,model,sessionId,operation,inputTokens,outputTokens,totalTokens,cost,duration,cacheReadTokens,cacheWriteTokens,price',
      `${at},"'@x, ""y""","'=1+1","'@x, ""y""`,
      `:z","'-2",1,1,2,0.000018000,7,0,0,default`,
      '',
    ].join('\n');
    expect(String(reply.body).slice(0, begin.length)).to.equal(begin);
    expect(String(reply.body).endsWith('\n')).to.equal(false);
  });

  it('has costs as CSV that sum to the total, however small each is', async () => {
    const spender = world.fresh('spender');
    const as = await world.world.makeSession({ username: spender, role: 'operator', workspace: 10, tenant: 10 });
    // $0.00004 each.
    const reports = Array.from({ length: 1_000 }, () => usage({ inputTokens: 8, outputTokens: 0 }));
    expect((await ask('POST', '/api/tokens/batch', { reports }, as)).status).to.equal(200);
    const lines = String((await ask('GET', `${PATH}&format=csv`, undefined, as)).body).split('\n');
    const column = lines[0]?.split(',').indexOf('cost') ?? -1;
    const nanos = lines.slice(1).map((line) => Math.round(Number(line.split(',')[column]) * 1e9));
    expect(nanos.reduce((sum, one) => sum + one, 0)).to.equal(0.04 * 1e9);
  });

  it('is guarded against formulas like every export', async () => {
    const models = ['=1', '\uff1d1', '\uff0b1', '\uff20x', '+1', '-1', '@x', 'plain'];
    for (const model of models) await ask('POST', '/api/tokens', usage({ model }));
    const { body } = await ask('GET', `${PATH}&format=csv&timeframe=hour`);
    for (const model of models)
      expect(String(body), model).to.include(`,"${model === 'plain' ? model : `'${model}`}",`);
  });

  it('has a file name that is safe in a header, with any timeframe', async () => {
    const reply = await ask('GET', `${PATH}&timeframe=${encodeURIComponent('a"/..;é\n')}`);
    expect(reply.status).to.equal(200);
    expect(reply.headers.get('content-disposition')).to.match(
      /^attachment; filename="token-usage-a_+-[\d-]{10}\.json"$/,
    );
    await world.refused('GET', `${PATH}&format=xml`, undefined, 400, /format/);
    await world.refused('GET', `${PATH}&format=csv&evidence=1`, undefined, 400, /format=json/);
  });

  it('is empty without reports', async () => {
    const stranger = `stranger-${Date.now()}`;
    const as = await world.world.makeSession({ username: stranger, role: 'viewer', workspace: 9, tenant: 9 });
    expect(conforms(tokenExportResponse, await ask('GET', PATH, undefined, as)).usage).to.deep.equal([]);
    const { body } = await ask('GET', `${PATH}&format=csv`, undefined, as);
    expect(String(body).split('\n')).to.have.length(1);
  });
});
