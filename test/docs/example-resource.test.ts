/**
 * The worked example of docs/adding-a-resource.md: its code is run at every level, from the decision to HTTP, and the
 * document quotes it literally.
 */

import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { createCredentialCheck } from '../../api/auth/recheck.ts';
import { createSecurityEvents } from '../../api/auth/security-events.ts';
import { createAccountGuard } from '../../api/http/limits.ts';
import { createApiServer } from '../../api/http/server.ts';
import type { Services } from '../../api/services.ts';
import { createStreamHub } from '../../api/stream/hub.ts';
import { sourceOf } from '../../api/stream/source.ts';
import { createRecentCounts } from '../../commands/limits.ts';
import { createTaskQueue } from '../../commands/tasks/queue.ts';
import { createCredentials } from '../../infra/credentials/credentials.ts';
import { prepareFirstStart } from '../../infra/credentials/first-start.ts';
import { createPersonRecords } from '../../infra/credentials/people.ts';
import { createPersonKeys } from '../../infra/credentials/person-keys.ts';
import { createLocks } from '../../infra/database/locks.ts';
import { followLive } from '../../infra/following/live.ts';
import { readHostOf } from '../../infra/host.ts';
import { createScheduler } from '../../infra/jobs/scheduler.ts';
import { createLogIndex } from '../../infra/log-index/log-index.ts';
import { createLogger } from '../../infra/logging.ts';
import { createGateways } from '../../infra/outgoing/admin/gateways.ts';
import { createGoogleVerifier } from '../../infra/outgoing/auth/google.ts';
import { createGithub } from '../../infra/outgoing/github/client.ts';
import { outgoingOf } from '../../infra/outgoing/post.ts';
import { createReleases } from '../../infra/outgoing/releases.ts';
import { createProofs } from '../../infra/proof/proofs.ts';
import { type ChangeTracker, createChangeTracker } from '../../infra/read-models/change-tracker.ts';
import { startProjector } from '../../infra/read-models/projector.ts';
import { RowCaches } from '../../infra/read-models/row-cache.ts';
import { sharedQueries } from '../../infra/read-models/shared-queries.ts';
import { createLimitStores } from '../../infra/redis/limits.ts';
import { createPause } from '../../infra/stores/admin/pause.ts';
import { createScheduleRuns } from '../../infra/stores/admin/scheduler.ts';
import { createLeases } from '../../infra/stores/agents/leases.ts';
import { createIdempotencyStore } from '../../infra/stores/idempotency.ts';
import { createLogEntries } from '../../infra/stores/monitoring/logs.ts';
import { createWebhookRecords } from '../../infra/stores/webhooks/queue.ts';
import { createBackups } from '../../infra/tools/backup.ts';
import { projections } from '../../projections/index.ts';
import { createBacktests } from '../../queries/alerts/backtests.ts';
import { peopleDirectory } from '../../queries/auth/people.ts';
import { createDisplayNames } from '../../queries/names.ts';
import { createTaskProjects } from '../../queries/projects/tickets.ts';
import { createRecords } from '../../queries/records.ts';
import { taskQueueReads } from '../../queries/tasks/queue.ts';
import { createIsolations } from '../../queries/workspaces/isolation.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { EventDefinition } from '../../shared/events/define.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { framesOf } from '../../shared/events/monitoring/frames.ts';
import { seconds } from '../../shared/time.ts';
import { eventsOf, givenFor, rowsAfter, timeOf } from '../support/kit.ts';
import { call, testConfig } from '../support/service.ts';
import { embeddedDatabase, ensureTables, openView, testOrigin } from '../support/world.ts';
import { noteRoutes } from './example-resource/api/routes/notes.ts';
import { decideDiscard, decideRevise, noteDecider, noteStream, writeNote } from './example-resource/commands/notes.ts';
import { notesProjection } from './example-resource/projections/notes.ts';
import { listNotes } from './example-resource/queries/notes.ts';
import { noteDiscarded, noteRevised, noteWritten } from './example-resource/shared/events/notes.ts';

const written = noteWritten.draft({ note_id: 7, text: 'Tests are red' });
const revised = noteRevised.draft({ note_id: 7, text: 'Tests are green' });
const discarded = noteDiscarded.draft({ note_id: 7 });

const given = givenFor(noteDecider);

describe('example resource: decisions', () => {
  it('a changed text is recorded as an event', () => {
    given(written).when(decideRevise, 'Tests are green').then(revised);
  });
  it('an unchanged text is not recorded', () => {
    given(written, revised).when(decideRevise, 'Tests are green').then();
  });
  it('an unknown or discarded note is not found', () => {
    for (const before of [given(), given(written, discarded)]) {
      before.when(decideRevise, 'Tests are green').thenRefuses(404);
      before.when(decideDiscard).thenRefuses(404);
    }
    given(written).when(decideDiscard).then(discarded);
  });
});

describe('example resource: state and rows', () => {
  it('a revised note keeps its author and its creation time', () => {
    const { notes } = rowsAfter(notesProjection, eventsOf([written, revised]));
    expect(notes).to.deep.equal([
      {
        workspace_id: 1,
        id: 7,
        text: 'Tests are green',
        author: 'admin',
        created_at: seconds(timeOf(1)),
        updated_at: seconds(timeOf(2)),
        position: 2,
      },
    ]);
  });
  it('a discarded note has no row', () => {
    expect(rowsAfter(notesProjection, eventsOf([written, revised, discarded]))).to.deep.equal({ notes: [] });
  });
  it('frames and audit entries are produced', () => {
    const [first, last] = eventsOf([written, discarded]);
    const asDefinition = (definition: unknown) => definition as EventDefinition;
    expect(framesOf(asDefinition(noteWritten), first as never).map(({ type }) => type)).to.deep.equal([
      'note.created',
      'activity.created',
    ]);
    expect(auditOf(asDefinition(noteDiscarded), last as never)).to.include({ action: 'note_discarded', target_id: 7 });
  });
});

describe('example resource: on the embedded store', function () {
  this.timeout(60_000);
  let place: Awaited<ReturnType<typeof embeddedDatabase>>;
  let view: Awaited<ReturnType<typeof openView>>;
  const close: (() => Promise<unknown>)[] = [];
  let base: { url: string };
  const models = [...projections, notesProjection];
  const log = createLogger('silent');

  before(async () => {
    place = await embeddedDatabase();
    close.push(place.close);
    await ensureTables(place.database, models);
    const changes = createChangeTracker();
    const credentials = createCredentials(place.database, log);
    const own = { changes, leases: () => 0, credentials: credentials.changes };
    view = await openView(
      place.database,
      [...catalogue.values(), ...[noteWritten, noteRevised, noteDiscarded]],
      models,
      undefined,
      own,
    );
    close.push(view.close);
    const { server, end } = await serve(changes, credentials);
    close.push(end);
    base = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  });
  after(async () => {
    for (const step of close.reverse()) await step();
  });

  /** The example's routes behind the real front, put together as infra/main.ts does it. */
  async function serve(
    changes: ChangeTracker,
    credentials: ReturnType<typeof createCredentials>,
  ): Promise<{ server: Server; end(): Promise<void> }> {
    const { database, store, commands, following, positions } = view;
    const config = testConfig('');
    const options = { database, store, following, positions, changes, rows: new RowCaches(), log, process: 'example' };
    const projector = startProjector(models, options);
    const { reads } = view;
    await prepareFirstStart({ config, commands, credentials, reads, log });
    const limits = await createLimitStores(undefined, log);
    const metrics = new Registry();
    const locks = createLocks(database);
    const freshness = positions;
    const services = {
      settings: config,
      version: '0.0.0',
      log,
      commands,
      store,
      ...sharedQueries(reads, freshness, Date.now),
      records: createRecords({ reads, store }),
      readModels: positions,
      credentials,
      freshness,
      gateways: createGateways(),
      consoleFolder: new URL('../../console/', import.meta.url),
      gatewaySessions: { list: async () => [] },
      github: createGithub(config),
      backups: createBackups({ ...view, config }),
      pause: createPause(view.database.pool),
      backtests: createBacktests({ reads, store, now: Date.now, everySeconds: 60 }),
      leases: createLeases(database.pool),
      eachIsEvent: async () => false,
      queue: createTaskQueue({ commands, reads: taskQueueReads(reads), locks }),
      isolation: createIsolations({ reads, freshness }),
      people: peopleDirectory(() => reads),
      personRecords: createPersonRecords({ database, store, keys: createPersonKeys(database) }),
      logs: createLogEntries(database.pool),
      logIndex: createLogIndex({ database, eventLog: view.eventLog, timeoutMs: 1_000 }),
      proofs: createProofs(database, config),
      host: readHostOf(config.dataDir),
      releases: createReleases(config),
      scheduler: createScheduler({
        schedules: [],
        runs: createScheduleRuns(database.pool, log),
        jobs: () => Promise.reject(new Error('there are no jobs')),
        gate: async () => undefined,
        now: Date.now,
      }),
      idempotency: createIdempotencyStore(database.pool, 'example'),
      locks,
      recentCounts: createRecentCounts(Date.now),
      webhooks: createWebhookRecords(database.pool),
      outgoing: outgoingOf(config),
      metrics,
      limitStore: limits.storeFor,
      accountGuard: createAccountGuard({ limitStore: limits.storeFor, now: Date.now }, () => {}),
      ready: async () => ({ ok: true, checks: {}, details: {} }),
      securityEvents: createSecurityEvents({ commands, log, now: Date.now }),
      verifyGoogleToken: createGoogleVerifier(config),
      oidc: undefined,
      namesAtOnce: createDisplayNames({ reads, freshness, waits: false }),
      stream: createStreamHub({
        source: { ...sourceOf(store), follow: (options) => followLive(following.reader, options) },
        credentials: createCredentialCheck({ reads, credentials, freshness }),
        names: {
          people: createDisplayNames({ reads, freshness }),
          projects: createTaskProjects({ reads, freshness }),
        },
        log,
        metrics,
      }),
    } as Services;
    const server = createApiServer(noteRoutes, services, (app) => {
      app.get('/greeting', (_req, res) => {
        res.json({ greeting: 'hello' });
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return {
      server,
      async end() {
        server.close();
        server.closeAllConnections();
        await services.securityEvents.drain();
        await services.stream.close();
        await projector.close();
        await credentials.close();
      },
    };
  }

  it('the result of a command can be read once it has returned', async () => {
    const { commands } = view;
    const { workspace } = testOrigin;
    const { id } = await writeNote(commands, { origin: testOrigin }, 'Tests are red');
    await commands.execute(noteDecider, noteStream(workspace, id), { origin: testOrigin }, (state) =>
      decideRevise(state, 'Tests are green'),
    );
    const { notes, total } = await listNotes(view.reads, workspace, { limit: 50, offset: 0 });
    expect(total).to.equal(1);
    expect(notes[0]).to.include({ id, text: 'Tests are green', author: 'tester' });
    await commands.execute(noteDecider, noteStream(workspace, id), { origin: testOrigin }, decideDiscard);
    expect(await listNotes(view.reads, workspace, { limit: 50, offset: 0 })).to.deep.equal({
      notes: [],
      total: 0,
    });
  });

  it('Express middleware handles paths without a route, after the checks of every request', async () => {
    const { status, headers, body } = await call(base, 'GET', '/greeting');
    expect({ status, body }).to.deep.equal({ status: 200, body: { greeting: 'hello' } });
    expect(headers.get('x-frame-options')).to.equal('DENY');
    expect((await call(base, 'GET', '/farewell')).status).to.equal(404);
    expect((await call(base, 'PATCH', '/api/notes')).headers.get('allow')).to.equal('GET, POST');
  });

  it('the result of an HTTP request can be read once it has returned', async () => {
    const { status, body } = await call(base, 'POST', '/api/notes', { text: ' Deploy on Friday ' });
    expect(status).to.equal(201);
    expect(body.note).to.include({ text: 'Deploy on Friday', author: 'api' });
    const { id } = body.note;
    expect((await call(base, 'GET', '/api/notes')).body).to.deep.include({ notes: [body.note], total: 1 });

    expect((await call(base, 'PUT', `/api/notes/${id}`, { text: 'Deploy on Monday' })).status).to.equal(200);
    expect((await call(base, 'GET', '/api/notes')).body.notes[0].text).to.equal('Deploy on Monday');
    expect((await call(base, 'DELETE', `/api/notes/${id}`)).body).to.deep.equal({ success: true });
    expect((await call(base, 'GET', '/api/notes')).body).to.deep.equal({ notes: [], total: 0 });
    expect((await call(base, 'PUT', `/api/notes/${id}`, { text: 'Too late' })).status).to.equal(404);
  });

  it('the contract’s schema rejects invalid notes, and authorization rejects callers without a key', async () => {
    const { status, body } = await call(base, 'POST', '/api/notes', { text: '' });
    expect({ status, details: body.details }).to.deep.equal({ status: 400, details: ['text: must not be empty'] });
    expect((await call(base, 'POST', '/api/notes', { text: 'x' }, { 'x-api-key': '' })).status).to.equal(401);
  });

  it('the same Idempotency-Key creates one note', async () => {
    const again = { 'idempotency-key': 'note-1' };
    const first = await call(base, 'POST', '/api/notes', { text: 'once' }, again);
    const second = await call(base, 'POST', '/api/notes', { text: 'once' }, again);
    expect(second.body).to.deep.equal(first.body);
    expect((await call(base, 'GET', '/api/notes')).body.total).to.equal(1);
  });
});

describe('documentation', () => {
  // Compiled tests run from dist/; documents and sources are where package.json is.
  const top = new URL('../../../', import.meta.url);
  const documents = readdirSync(new URL('docs/', top)).filter((name) => name.endsWith('.md'));
  const quotes = documents.flatMap((document) =>
    [
      ...readFileSync(new URL(`docs/${document}`, top), 'utf8').matchAll(
        /^<!-- from (\S+) -->\n```\w*\n([\s\S]*?)^```$/gm,
      ),
    ].map(([, source = '', code = '']) => ({ document, source, code })),
  );

  it('adding-a-resource.md quotes every file of the example', () => {
    const quoted = quotes.filter(({ document }) => document === 'adding-a-resource.md').map(({ source }) => source);
    for (const file of readdirSync(new URL('test/docs/example-resource/', top), {
      recursive: true,
      encoding: 'utf8',
    })) {
      if (file.endsWith('.ts')) expect(quoted).to.include(`test/docs/example-resource/${file}`);
    }
  });
  for (const { document, source, code } of quotes) {
    it(`${document}: its quotation from ${source} is exact (${code.split('\n', 1)[0]?.slice(0, 60)})`, () => {
      const file = new URL(source, top);
      expect(existsSync(file), `${fileURLToPath(file)} exists`).to.equal(true);
      expect(readFileSync(file, 'utf8')).to.include(code);
    });
  }
});
