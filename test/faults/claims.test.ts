/** kill -9 between the two appends that create a named record: the claim of its name is left behind, and frees soon. */
import { expect } from 'chai';
import { connected, freshDatabase } from '../support/databases.ts';
import { closing, fixture } from '../support/fixture.ts';
import { describeWith } from '../support/needs.ts';
import { KEY, type ServiceProcess, startProcess, temporaryDirectory } from '../support/service-process.ts';
import { until } from '../support/until.ts';

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
const LOCK = 471_147;

/** Holds appends of registrations back until the lock is free, and then fails them: they never happened. */
const HOLD = `
  CREATE FUNCTION log.hold() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(${LOCK}); RAISE EXCEPTION 'held back by a test'; END $$;
  CREATE TRIGGER hold BEFORE INSERT ON log.events FOR EACH ROW WHEN (NEW.type = 'AgentRegistered')
    EXECUTE FUNCTION log.hold()`;

describeWith('TEST_DATABASE_URL', 'a process killed between claiming a name and creating its owner', function () {
  this.timeout(180_000);
  const database = fixture(freshDatabase);
  const directory = fixture(temporaryDirectory);
  const client = fixture(() => connected({ connectionString: database.url }));

  const register = async ({ url }: ServiceProcess) => {
    const body = JSON.stringify({ name: 'orphan', role: 'coder' });
    const response = await fetch(`${url}/api/agents`, { method: 'POST', headers, body });
    const { code, error } = (await response.json()) as { readonly code?: string; readonly error?: string };
    return { status: response.status, code, error };
  };
  const isWaiting = async () => {
    const { rows } = await client.query(
      "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted",
      [LOCK],
    );
    return rows.length > 0;
  };

  it('leaves a name that returns 409 BUSY to others and is free again within seconds', async () => {
    const doomed = await startProcess(directory.path, { DATABASE_URL: database.url });
    await using survivor = closing(await startProcess(directory.path, { DATABASE_URL: database.url }));
    await client.query(HOLD);
    await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
    const lost = register(doomed).catch((error: unknown) => error);
    await until('the registration is held back', isWaiting);
    await doomed.stop('SIGKILL');
    expect(await lost).to.be.instanceOf(Error);
    await client.query('SELECT pg_advisory_unlock($1)', [LOCK]);
    await client.query('DROP TRIGGER hold ON log.events');

    const { rows } = await client.query("SELECT stream, at FROM log.events WHERE type = 'NameClaimed'");
    expect(rows.map(({ stream }) => stream)).to.include('name-1-orphan');
    const claimedAt = Math.max(...rows.map(({ at }) => Number(at)));
    const refusals: unknown[] = [];
    for (;;) {
      const { status, code, error } = await register(survivor);
      if (status === 201) break;
      refusals.push([status, code]);
      expect(error).to.match(/at this moment; try again/);
      expect(Date.now() - claimedAt, 'milliseconds after the claim').to.be.below(20_000);
    }
    expect(refusals).to.deep.equal(refusals.map(() => [409, 'BUSY']));
    expect(await register(survivor)).to.include({ status: 409, code: 'NAME_TAKEN' });
    const { rows: registered } = await client.query("SELECT 1 FROM log.events WHERE type = 'AgentRegistered'");
    expect(registered).to.have.length(1);
  });
});
