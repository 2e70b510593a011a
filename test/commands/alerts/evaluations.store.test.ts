/** Rules are evaluated by several processes at once, and each trigger happens once. */
import { expect } from 'chai';
import { type Evaluating, evaluateRule, evaluateWorkspace, PAGE } from '../../../commands/alerts/evaluations.ts';
import { createRule } from '../../../commands/alerts/rules.ts';
import { createCommands } from '../../../commands/handler.ts';
import { createRecentCounts } from '../../../commands/limits.ts';
import { evaluateAlerts } from '../../../commands/schedules/alerts/evaluations.ts';
import { FIRST } from '../../../commands/schedules/schedule.ts';
import { createLocks } from '../../../infra/database/locks.ts';
import { alertRulesProjection } from '../../../projections/alerts/rules.ts';
import type { AlertReads, WatchedRule } from '../../../queries/alerts/rules.ts';
import { alertReads } from '../../../queries/alerts/rules.ts';
import {
  alertRuleCreated,
  alertRuleDeleted,
  alertRuleTriggered,
  alertRuleUpdated,
  NO_RULE,
} from '../../../shared/events/alerts/rules.ts';
import type { Locks } from '../../../shared/ports/locks.ts';
import { ensureTables, openView, testDatabase, testOrigin } from '../../support/world.ts';

type View = Pick<Awaited<ReturnType<typeof openView>>, 'commands' | 'close' | 'positions' | 'store'>;

const rule = {
  ...NO_RULE,
  ...{ name: 'r', enabled: true, condition_field: 'status', condition_value: 'error', cooldown_minutes: 10 },
};

describe('commands: evaluation of alert rules', function () {
  this.timeout(60_000);
  let close: () => Promise<void>;
  const views: View[] = [];
  let reads: AlertReads;
  let locks: Locks;
  before(async () => {
    const opened = await testDatabase();
    ({ close } = opened);
    locks = createLocks(opened.database);
    await ensureTables(opened.database, [alertRulesProjection]);
    const open = () =>
      openView(
        opened.database,
        [alertRuleCreated, alertRuleUpdated, alertRuleDeleted, alertRuleTriggered],
        [alertRulesProjection],
      );
    const [one, other] = [await open(), await open()];
    const projector = one.project('one');
    // What it has appended is shown by the projector of the other one.
    const { store, counters } = other;
    const commands = createCommands({ store, counters });
    views.push(one, { ...other, commands });
    const closing = close;
    close = async () => {
      await projector.close();
      for (const view of views) await view.close();
      await closing();
    };
    // Its tables of agents and tasks are not there.
    const matching: AlertReads['matching'] = async () => ({
      ...{ records: [{ id: 7, name: 'ann', shown: true }], more: 0 },
      ...{ total: 1, ids: [7], reported_to: null },
    });
    reads = { ...alertReads(one.reads), isMet: async () => true, matching };
  });
  after(() => close?.());

  const [first, second] = [() => views[0] as View, () => views[1] as View];
  const parts = (view: View, now: number, more: Partial<AlertReads> = {}): Evaluating => ({
    ...{ commands: view.commands, reads: { ...reads, ...more }, now: () => now, failed: () => undefined },
  });
  const context = (workspace: number) => ({ origin: { ...testOrigin, workspace } });
  /** @param others rules that the workspace has besides */
  const add = (workspace: number, others = 0, { commands, positions } = first()) => {
    const count = async () => others + (await watchedIn(workspace)).length;
    const recentCounts = createRecentCounts(Date.now);
    const limits = { locks, readModels: positions, count, countThere: count, recentCounts };
    return createRule(commands, context(workspace), limits, rule, () => undefined).then(({ id }) => id);
  };
  const watchedIn = (workspace: number) => reads.watched({ workspace, id: 0 }, 1_000, workspace);
  const only = async (workspace: number) => (await watchedIn(workspace))[0] as WatchedRule;

  it('the number of rules per workspace is limited, even under concurrent creation', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => add(77, 498)));
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(refused.map(({ status }) => status)).to.deep.equal([409, 409, 409, 409]);
    expect(refused[0].message).to.match(/at most 500 alert rules; delete/);
    expect(await watchedIn(77)).to.have.length(2);
  });

  it('twenty concurrent evaluations by two instances trigger a rule once', async () => {
    await add(31);
    const found = await only(31);
    const at = Date.now();
    // What was read says each time that it has never triggered.
    for (const expected of [1, 0, 0]) {
      const verdicts = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          evaluateRule(parts(n % 2 === 0 ? first() : second(), at), context(31), found),
        ),
      );
      const triggers = verdicts.filter(({ verdict }) => verdict === 'Condition met. Agents: ann').length;
      expect(triggers).to.equal(expected);
    }
  });

  it('rules are evaluated by id, page by page, and a failing rule is named', async () => {
    const ids: number[] = [];
    for (let n = 0; n < 3; n++) ids.push(await add(32));
    const failing: Partial<AlertReads> = {
      isMet: async ({ id }) => {
        if (id === ids[0]) throw new Error('cannot be told');
        return id === ids[1];
      },
    };
    const failures: number[] = [];
    const failed: Evaluating['failed'] = (_error, { id }) => failures.push(id);
    const { evaluation, rules, triggers } = await evaluateWorkspace(
      { ...parts(first(), Date.now(), failing), failed },
      context(32),
    );
    expect(evaluation).to.deep.include({ evaluated: 3, triggered: 1 });
    expect(evaluation.results.map(({ rule_id, reason }) => [rule_id, reason])).to.deep.equal([
      [ids[0], 'The condition could not be evaluated'],
      [ids[1], 'Condition met. Agents: ann'],
      [ids[2], 'Condition not met'],
    ]);
    expect(failures).to.deep.equal([ids[0]]);
    expect([new Set(rules).size, triggers.length], 'events behind the numbers').to.deep.equal([3, 1]);
  });

  it('the schedule covers all workspaces, and rules left over from one turn come first in the next', async () => {
    const many = Array.from({ length: PAGE + 5 }, (_, n) => ({
      ...rule,
      tenant: 1,
      workspace: 1 + (n % 2),
      id: n + 1,
    }));
    const sorted: WatchedRule[] = many
      .map((one) => ({ ...one, last_triggered_at: null, reported_to: null, trigger_count: 0, position: one.id }))
      .sort((a, b) => a.workspace - b.workspace || a.id - b.id);
    const seen: number[] = [];
    const all: AlertReads = {
      ...reads,
      watched: async (after, limit) =>
        sorted
          .filter(
            ({ workspace, id }) => workspace > after.workspace || (workspace === after.workspace && id > after.id),
          )
          .slice(0, limit),
      recipientOf: async (_workspace, text) => text,
      isMet: async ({ id }) => {
        seen.push(id);
        return false;
      },
    };
    let clock = 0;
    const now = () => clock++;
    const turn = (deadline: number, begin: typeof FIRST) =>
      evaluateAlerts({ ...parts(first(), 0), reads: all, now, deadline, begin });
    const one = await turn(40, FIRST);
    expect(one.evaluated).to.be.within(1, 40);
    expect(seen).to.deep.equal(sorted.slice(0, one.evaluated).map(({ id }) => id));
    const two = await turn(1e9, one.stopped);
    expect(two).to.deep.include({ evaluated: many.length - one.evaluated, stopped: FIRST });
    expect(seen).to.deep.equal(sorted.map(({ id }) => id));
  });
});
