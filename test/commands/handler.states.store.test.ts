/** States of streams in processes that share a log. */
import { expect } from 'chai';
import { claimantOf, claimName, releaseName } from '../../commands/claims.ts';
import type { Commands } from '../../commands/handler.ts';
import { agentNameClaims } from '../../commands/names.ts';
import type { Claim } from '../../commands/naming.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { closing, fixture } from '../support/fixture.ts';
import { describeWith } from '../support/needs.ts';
import { databaseOnServer, databaseWithEventStore, openView, type TestDatabase, testOrigin } from '../support/world.ts';

describeWith('TEST_DATABASE_URL', 'states of streams in two processes', () => {
  const logs: readonly [string, () => Promise<TestDatabase>][] = [
    ['PostgreSQL', databaseOnServer],
    ['an event store server', databaseWithEventStore],
  ];
  for (const [name, open] of logs)
    describe(name, function () {
      this.timeout(60_000);
      const place = fixture(open);
      const definitions = [...catalogue.values()];

      /** A process that follows the log, and the number of streams that it has read. */
      async function startProcess() {
        const database = (await place.other?.()) as TestDatabase['database'];
        const view = await openView(database, definitions, [], await place.openLog?.());
        let reads = 0;
        const { readStream } = view.store;
        view.store.readStream = (...args) => {
          reads++;
          return readStream(...args);
        };
        await view.following.reader.started(AbortSignal.timeout(10_000));
        const close = async () => {
          await view.close();
          await database.close();
        };
        return closing({ commands: view.commands, reads: () => reads, close });
      }

      const context = () => ({ origin: testOrigin });
      const [claim] = agentNameClaims(1, 'ada', () => undefined) as [Claim<unknown>];
      const ownerIn = (commands: Commands) => claimantOf(commands, claim.kind, 1, claim.name);

      it('show what another process was acknowledged, and are read only after changes', async () => {
        await using writer = await startProcess();
        await using reader = await startProcess();
        for (let round = 1; round <= 100; round++) {
          const owner = `agent-1-${round}`;
          await claimName(writer.commands, context(), claim.kind, 1, claim.name, owner);
          expect(await ownerIn(reader.commands), `round ${round}, claimed`).to.equal(owner);
          await releaseName(writer.commands, context(), claim.kind, 1, claim.name, owner);
          expect(await ownerIn(reader.commands), `round ${round}, released`).to.equal(undefined);
        }
        const before = reader.reads();
        expect(before, 'reads after changes').to.be.within(2, 250);
        for (let n = 0; n < 50; n++) expect(await ownerIn(reader.commands)).to.equal(undefined);
        expect(reader.reads()).to.equal(before);
      });
    });
});
