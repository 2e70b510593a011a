/**
 * 16 clients at once, whose recorded history is checked for real-time order (docs/consistency.md).
 *
 * CONSISTENCY_SECONDS makes each run as long, CONSISTENCY_SEED repeats random choices, CONSISTENCY_FAULTS=0 runs without
 * faults, CONSISTENCY_TIERS=postgres,cluster on some tiers only.
 */
import { expect } from 'chai';
import { missingStores } from '../support/cluster.ts';
import { described, violationsOf, writesBehind } from '../support/consistency/check.ts';
import { startClients } from '../support/consistency/clients.ts';
import { type Deployment, deploy, TIERS, type Tier } from '../support/consistency/deployments.ts';
import { randomFrom } from '../support/load.ts';
import { needs } from '../support/needs.ts';
import { until } from '../support/until.ts';

const { CONSISTENCY_SEED, CONSISTENCY_SECONDS, CONSISTENCY_FAULTS, CONSISTENCY_TIERS } = process.env;
const seed = Number(CONSISTENCY_SEED ?? Date.now() % 1_000_000);
const seconds = Number(CONSISTENCY_SECONDS ?? 0);
const withFaults = CONSISTENCY_FAULTS !== '0';
const tiers = CONSISTENCY_TIERS?.split(',') ?? TIERS;

const CLIENTS = 16;
/** Of a run without a duration: operations before each fault, and after the last one. */
const OPERATIONS = 150;
const FAULTS: Readonly<Record<Tier, number>> = { embedded: 1, postgres: 2, cluster: 1 };

for (const tier of TIERS.filter((one) => tiers.includes(one))) {
  describe(`the history of ${CLIENTS} clients on ${tier}${withFaults ? ', with faults' : ''} (CONSISTENCY_SEED=${seed})`, function () {
    this.timeout(120_000 + 4 * seconds * 1_000);
    let deployment: Deployment | undefined;

    before(async function () {
      if (tier !== 'embedded') {
        const missing = missingStores();
        needs(missing ?? 'stores', missing === undefined, this);
      }
      deployment = await deploy(tier, withFaults);
    });
    after(() => deployment?.close());

    it('is in real-time order', async () => {
      const { targets, faults, complaints, described: on } = deployment as Deployment;
      const random = randomFrom(seed);
      const begun = performance.now();
      const clients = startClients({ targets, random: randomFrom(seed + 1), clients: CLIENTS });
      /** How long each fault took until what it ended was back, milliseconds. */
      const caused: Record<string, number[]> = {};
      const more = (count: number) => {
        const enough = clients.history.length + count;
        return until(`${count} more operations are done`, () => clients.history.length >= enough, 60_000);
      };
      const isLong = () => performance.now() - begun > seconds * 1_000;
      for (let round = 0; seconds > 0 ? !isLong() : round < FAULTS[tier]; round++) {
        await more(OPERATIONS * (0.5 + random()));
        const fault = withFaults ? faults[Math.floor(random() * faults.length)] : undefined;
        if (!fault) continue;
        const from = performance.now();
        await fault.cause();
        caused[fault.name] = [...(caused[fault.name] ?? []), Math.round(performance.now() - from)];
      }
      await more(OPERATIONS);
      await clients.stop();
      const took = (performance.now() - begun) / 1_000;
      const violations = violationsOf(clients.history);
      const kinds = new Map<string, number>();
      for (const { kind } of violations) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      console.log(
        `      ${clients.history.length} operations in ${took.toFixed(1)} s on ${on}, ${violations.length} violations;`,
        ...[clients.statuses, caused, Object.fromEntries(kinds)],
      );
      const lines = [...violations.map(described), ...clients.unexpected];
      if (lines.length > 0)
        console.log([...complaints().slice(-15), ...writesBehind(violations, clients.history)].join('\n'));
      expect(lines.slice(0, 20).join('\n'), 'violations and unexpected responses').to.equal('');
    });
  });
}
