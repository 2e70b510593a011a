/** Data taken out as a file: JSON and CSV, streamed, audited. */
import { request } from 'node:http';
import { expect } from 'chai';
import { agentStream } from '../../../commands/agents/agents.ts';
import { EXPORT_KINDS, exportResponse } from '../../../shared/contract/admin/export.ts';
import { fixture } from '../../support/fixture.ts';
import { agentRegisteredAs } from '../../support/rows.ts';
import { call, startTestService, TEST_ADMIN, TEST_KEY } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';
import { makeTask } from '../../support/worlds/monitoring.ts';

/** Cells of a CSV text, as RFC 4180 has it. */
function cellsOf(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    rows.at(-1)?.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
    if (end === '\n') rows.push([]);
    if (end === '') break;
  }
  return rows.slice(0, -1);
}

describe('GET /api/export', function () {
  this.timeout(120_000);
  const base = fixture(startTestService);

  const ask = (query: string) => call(base, 'GET', `/api/export?${query}`);
  const audited = async () => (await call(base, 'GET', '/api/audit?action=data_export&limit=50')).body.entries;

  it('exports every kind of record as JSON, newest first, and records it in the audit trail', async () => {
    const older = await makeTask(base, { title: 'older', tags: ['x'], metadata: { deep: { a: 1 } } });
    const newer = await makeTask(base, { title: 'newer' });
    await call(base, 'POST', '/api/agents', { name: 'exported', role: 'coder', config: { api_key: 'geheim-4711' } });
    for (const kind of [...EXPORT_KINDS, 'all']) {
      const { status, body, headers } = await ask(`type=${kind}`);
      expect(status, kind).to.equal(200);
      expect(exportResponse.parse(body), kind).to.deep.equal(body);
      expect(headers.get('content-type')).to.equal('application/json; charset=utf-8');
      expect(JSON.stringify(body)).not.to.include('geheim');
      expect(body.type).to.equal(kind);
      const lists = kind === 'all' ? EXPORT_KINDS.map((one) => body.data[one]) : [body.data];
      expect(lists.flat()).to.have.length(body.count);
      const [entry] = await audited();
      expect(entry.detail).to.deep.equal({ type: kind, format: 'json', row_count: body.count });
    }
    const { body, headers } = await ask('type=tasks');
    expect(headers.get('content-disposition')).to.match(/^attachment; filename=tasks-\d{4}-\d\d-\d\d\.json$/);
    expect(
      body.data.map(({ id }: { id: number }) => id).filter((id: number) => id === older || id === newer),
    ).to.deep.equal([newer, older]);
    const row = body.data.find(({ id }: { id: number }) => id === older);
    expect(row).to.include({ title: 'older', tags: '["x"]', workspace_id: 1 });
    expect(JSON.parse(row.metadata)).to.deep.equal({ deep: { a: 1 } });
    const agents = (await ask('type=agents')).body.data;
    expect(agents.find(({ name }: { name: string }) => name === 'exported').config).to.equal('{"api_key":"--------"}');
  });

  it('names creators as they were at the creation: a later user of the name is another person', async () => {
    const before = await makeTask(base, { title: 'before', created_by: 'later' });
    const second = Math.floor(Date.now() / 1000);
    await until('the next second', () => Date.now() / 1000 > second + 1);
    const user = { username: 'later', password: TEST_ADMIN.password, role: 'viewer', display_name: 'Late Comer' };
    expect((await call(base, 'POST', '/api/auth/users', user)).status).to.equal(201);
    const after = await makeTask(base, { title: 'after', created_by: 'later' });
    const { data } = (await ask('type=tasks')).body;
    const creatorOf = (task: number) => data.find(({ id }: { id: number }) => id === task).created_by;
    expect([before, after].map(creatorOf)).to.deep.equal(['later', 'Late Comer']);
  });

  it('limits the rows and the time', async () => {
    const all = (await ask('type=activities')).body;
    expect(all.count).to.be.above(1);
    expect((await ask('type=activities&limit=1')).body.data).to.deep.equal(all.data.slice(0, 1));
    expect((await ask('type=all&limit=1')).body.data.activities).to.have.length(1);
    const { created_at: at } = all.data[0];
    expect((await ask(`type=activities&until=${at - 100_000}`)).body.count).to.equal(0);
    expect((await ask(`type=activities&since=${at + 100_000}`)).body.count).to.equal(0);
    expect((await ask(`type=activities&since=${at}&until=${at}`)).body.data).to.deep.equal(
      all.data.filter(({ created_at }: { created_at: number }) => created_at === at),
    );
  });

  it('rejects a missing or unknown type, and lists the valid ones', async () => {
    for (const query of ['', 'type=users', 'type=tasks&format=xml', 'type=tasks&since=yesterday']) {
      expect((await ask(query)).status, query).to.equal(400);
    }
    expect((await ask('')).body.error).to.match(/^type: .*activities/);
  });

  it('returns CSV that a spreadsheet neither splits nor runs', async () => {
    const titles = [
      '=HYPERLINK("http://x")',
      '+1',
      '-1+1',
      '@SUM(1)',
      '\t=1',
      ' =1',
      '\uff1d1',
      'a,b "c"\nd\re',
      'plain',
    ];
    for (const title of titles) await makeTask(base, { title, estimated_hours: -2, description: null } as object);
    const { status, body, headers } = await ask('type=tasks&format=csv');
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.equal('text/csv; charset=utf-8');
    expect(headers.get('content-disposition')).to.match(/filename=tasks-.*\.csv$/);
    const [head, ...rows] = cellsOf(body);
    expect(head?.join()).to.equal(
      'id,title,description,status,priority,assigned_to,created_by,created_at,updated_at,due_date,estimated_hours,actual_hours,tags',
    );
    const shown = new Map(rows.map((cells) => [cells[1], cells]));
    for (const title of titles) {
      const disarmed = title === '\t=1' ? "'\t'=1" : `'${title}`;
      const expected = title.startsWith('a,b') || title === 'plain' ? title : disarmed;
      expect([...shown.keys()], JSON.stringify(title)).to.include(expected);
    }
    for (const cells of rows) expect(cells).to.have.length(head?.length ?? 0);
    const entry = (await audited())[0];
    expect(entry.detail).to.deep.equal({ type: 'tasks', format: 'csv', row_count: rows.length });
  });

  it('returns all kinds in one CSV table, each row with its kind', async () => {
    const [head, ...rows] = cellsOf((await ask('type=all&format=csv')).body);
    expect(head?.slice(0, 3)).to.deep.equal(['record', 'id', 'title']);
    expect(new Set(head).size).to.equal(head?.length);
    expect(new Set(rows.map(([kind]) => kind))).to.include.keys('tasks', 'agents', 'activities', 'audit');
    for (const cells of rows) expect(cells).to.have.length(head?.length ?? 0);
  });

  it('ends when the client disconnects, and records what was sent', async () => {
    const { commands } = base.service.core;
    const size = 150_000;
    const many = 80;
    for (let id = 1; id <= many; id += 20) {
      await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          commands.record(agentStream(1, 700_000 + id + n), { origin: testOrigin }, [
            agentRegisteredAs(700_000 + id + n, `bulky-${id + n}`, { soul_content: 'x'.repeat(size) }),
          ]),
        ),
      );
    }
    await new Promise<void>((resolve, reject) => {
      const asked = request(`${base.url}/api/export?type=agents`, { headers: { 'x-api-key': TEST_KEY } }, (answer) => {
        answer.once('data', () => {
          asked.destroy();
          resolve();
        });
      });
      asked.on('error', reject);
      asked.end();
    });
    const { detail } = await until('the export is recorded', async () => {
      const [entry] = await audited();
      return entry.detail.type === 'agents' && entry.detail.row_count !== undefined ? entry : undefined;
    });
    expect(detail.row_count).to.be.within(1, many - 1);
    const whole = (await ask('type=agents')).body;
    expect(whole.count).to.be.at.least(many);
    expect(new Set(whole.data.map(({ id }: { id: number }) => id)).size).to.equal(whole.count);
  });
});
