/** Log lines: those of the service, and those that clients add. */
import { expect } from 'chai';
import { type LogEntryResponse, logResponse, logsResponse } from '../../../shared/contract/monitoring/logs.ts';
import { fixture } from '../../support/fixture.ts';
import { call, startTestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { makeAgent } from '../../support/worlds/monitoring.ts';

describe('/api/logs', () => {
  const base = fixture(startTestService);

  let operator: Record<string, string>;
  before(async () => {
    const { id } = await makeAgent(base, 'logger');
    const { body } = await call(base, 'POST', `/api/agents/${id}/keys`, { scopes: ['operator'] });
    operator = { 'x-api-key': body.api_key };
  });
  const list = async (query = '', as: Record<string, string> = {}): Promise<LogEntryResponse[]> =>
    conforms(logsResponse, await call(base, 'GET', `/api/logs${query}`, undefined, as)).logs;
  const messages = async (query: string) => (await list(query)).map(({ message }) => message);
  const add = async (body: object, as: Record<string, string> = {}): Promise<LogEntryResponse> =>
    conforms(logResponse, await call(base, 'POST', '/api/logs', { action: 'add', ...body }, as)).entry;

  it('names the agent whose key added a line, whatever source it sends', async () => {
    for (const body of [
      { message: 'mine' },
      { message: 'mine', source: 'signalbox' },
      { message: 'mine', source: 'agent:other' },
    ])
      expect((await add(body, operator)).source).to.equal('agent:logger');
  });

  it('stores added lines with defaults', async () => {
    const entry = await add({ message: 'A line' });
    expect(entry).to.include({ level: 'info', source: 'signalbox', message: 'A line', data: null });
    expect(entry).not.to.have.property('session');
    expect(entry.id).to.match(/^custom-\d{13}-[0-9a-z]{6}$/);
    expect(entry.timestamp).to.be.within(Date.now() - 60_000, Date.now());
    const [newest] = await list('?limit=1');
    expect(newest).to.deep.equal(entry);
  });

  it('finds lines by level, source, session and text, newest first', async () => {
    await add({ message: 'Disk 90% full', level: 'warn', source: 'disk_1', session: 'run:7' });
    await add({ message: 'disk is FULL', level: 'error', source: 'disk_1' });
    await add({ message: 'nothing to see', level: 'debug', source: 'diskx1' });
    expect(await messages('?source=disk_1')).to.deep.equal(['disk is FULL', 'Disk 90% full']);
    expect(await messages('?level=warn&source=disk_1')).to.deep.equal(['Disk 90% full']);
    expect(await messages('?session=un:7')).to.deep.equal(['Disk 90% full']);
    expect(await messages('?search=full&limit=2')).to.deep.equal(['disk is FULL', 'Disk 90% full']);
    expect(await messages('?search=0%25%20f')).to.deep.equal(['Disk 90% full']);
    expect(await messages('?search=DISK_1')).to.deep.equal(['disk is FULL', 'Disk 90% full']);
    expect((await call(base, 'GET', '/api/logs?action=sources')).body.sources).to.include.members(['disk_1', 'diskx1']);
  });

  it('returns the newest 50 lines of each source, optionally since a time', async () => {
    for (let n = 0; n < 55; n++) await add({ message: `turn ${n}`, source: 'loud' });
    const last = await add({ message: 'quiet', source: 'soft' });
    expect((await messages('?action=tail&limit=200')).filter((one) => one.startsWith('turn'))).to.have.length(50);
    expect(await messages('?action=tail&source=soft&level=error&search=other')).to.deep.equal(['quiet']);
    expect(await messages(`?action=tail&source=soft&since=${last.timestamp}`)).to.deep.equal([]);
    expect(await messages(`?action=tail&source=soft&since=${last.timestamp - 1}`)).to.deep.equal(['quiet']);
    expect(await messages('?action=tail&limit=3')).to.have.length(3);
  });

  it('rejects incomplete or invalid input', async () => {
    for (const body of [{}, { action: 'add' }, { action: 'add', message: ' ' }, { action: 'clear', message: 'a' }]) {
      expect((await call(base, 'POST', '/api/logs', body, operator)).status, JSON.stringify(body)).to.equal(400);
    }
    const levels = await call(base, 'POST', '/api/logs', { action: 'add', message: 'a', level: 'loud' }, operator);
    expect(levels.body.error).to.match(/^level: /);
    for (const query of ['action=other', 'level=loud', 'since=-1', 'search=%00']) {
      expect((await call(base, 'GET', `/api/logs?${query}`)).status, query).to.equal(400);
    }
  });

  it('contains lines of the service itself at warn and above, with data for admins only', async () => {
    const { log, process } = base.service.core;
    log.info('this is not kept');
    log.child({ policy: 'p' }).warn({ err: new Error('broken'), password: 'hunter2hunter2' }, 'something fails');
    const own = async (as: Record<string, string> = {}) => list('?search=something%20fails', as);
    await until('the line is stored', async () => (await own()).length > 0);
    const [line] = await own();
    expect(line).to.include({ level: 'warn', source: 'signalbox', message: 'something fails' });
    expect(line?.id).to.match(/^signalbox-\d{13}-[0-9a-z]{6}$/);
    expect(line?.data).to.deep.include({ policy: 'p', process, err: { type: 'Error', message: 'broken' } });
    expect(JSON.stringify(line)).not.to.include('hunter2');
    expect((await own(operator))[0]).to.deep.equal({ ...line, data: null });
    expect(await messages('?search=this%20is%20not%20kept')).to.deep.equal([]);
  });
});
