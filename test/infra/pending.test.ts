/** Rows of one read model before they are written: as they were, with the changes of the events since. Pure. */
import { expect } from 'chai';
import fc from 'fast-check';
import { PendingChanges } from '../../infra/read-models/pending.ts';
import { agentsProjection, agentsTable, agentTextsTable } from '../../projections/agents/agents.ts';
import { keyText, MemoryTables } from '../../projections/apply.ts';
import type { Projection } from '../../projections/projection.ts';
import { agentDeleted, agentDetailsChanged, agentStatusChanged } from '../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../shared/events/agents/heartbeat.ts';
import { agentMemoryWritten } from '../../shared/events/agents/memory.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { type Draft, eventsOf, registeredAgent } from '../support/kit.ts';

const AGENTS = [1, 2, 3];
const tables = [agentsTable, agentTextsTable];

const registered = (agentId: number) => registeredAgent({ agentId, name: `agent-${agentId}` });
const draftOf = (agentId: number, what: number, text: string): Draft => {
  const agent = { agentId, name: `agent-${agentId}` };
  const drafts: Draft[] = [
    agentDetailsChanged.draft({
      ...agent,
      changes: { role: text, config: { text } },
      via: 'id',
      writeToGateway: false,
      status: null,
    }),
    agentDetailsChanged.draft({ ...agent, changes: {}, via: 'name', writeToGateway: false, status: text }),
    agentStatusChanged.draft({
      ...agent,
      from: 'idle',
      to: text,
      cause: 'update',
      lastActivity: null,
      seen: false,
      announced: false,
    }),
    agentHeartbeatReceived.draft({
      ...agent,
      lastActivity: text,
      connectionId: null,
      workItemsCount: 0,
      workItemTypes: [],
    }),
    agentMemoryWritten.draft({ ...agent, text, append: true, size: text.length }),
    agentDeleted.draft({ ...agent, role: '', removeWorkspace: false }),
    registered(agentId),
  ];
  return drafts[what] as Draft;
};

/** A history in which an agent is registered once before anything else happens to it. */
const histories = fc
  .array(fc.tuple(fc.constantFrom(...AGENTS), fc.nat(5), fc.string({ maxLength: 5 })), { maxLength: 25 })
  .map((steps) => {
    const known = new Set<number>();
    return eventsOf(
      steps.flatMap(([agentId, what, text]) => {
        const before = known.has(agentId) ? [] : [registered(agentId)];
        known.add(agentId);
        return [...before, draftOf(agentId, what, text)];
      }),
    );
  });

describe('rows that are not written yet', () => {
  /** Rows as these events have made them. */
  function rowsAfter(events: readonly DomainEvent[]) {
    const rows = new MemoryTables();
    rows.apply(agentsProjection, events);
    return (table: (typeof tables)[number], id: number) => rows.get(table, keyText(table, { workspace_id: 1, id }));
  }

  it('are as they will be, whatever is written, and in whatever order requests are told of their events', () => {
    const counts = { asked: 0, unwritten: 0 };
    fc.assert(
      fc.property(
        histories,
        fc.array(fc.nat(30), { maxLength: 4 }),
        fc.infiniteStream(fc.nat(3)),
        (events, at, order) => {
          let current = 0;
          const pending = new PendingChanges(agentsProjection, () => current);
          const all = rowsAfter(events);
          const shuffled = events
            .map((event, n) => ({ event, place: n + (order.next().value as number) }))
            .sort((one, other) => one.place - other.place);
          for (const { event } of shuffled) {
            // Some are received from the log before their request is told of them.
            if (order.next().value === 0) pending.expect(event.position);
            pending.add(event);
          }
          for (const next of [0, ...at].sort((one, other) => one - other)) {
            current = Math.max(current, Math.min(next, events.length));
            const written = rowsAfter(events.slice(0, current));
            for (const table of tables)
              for (const id of AGENTS) {
                const before = written(table, id);
                const found = pending.row(table, { workspace_id: 1, id }, { row: before });
                expect(found?.row).to.deep.equal(all(table, id));
                counts.asked++;
                if (before !== all(table, id)) counts.unwritten++;
              }
          }
        },
      ),
      { numRuns: 300 },
    );
    expect(counts.unwritten, 'rows that differ from what is written').to.be.greaterThan(counts.asked / 20);
  });

  it('are known without the row in memory only if they begin with what is pending', () => {
    const events = eventsOf([registered(1), draftOf(1, 0, 'lead')]);
    let current = 0;
    const pending = new PendingChanges(agentsProjection, () => current);
    for (const event of events) pending.add(event);
    const key = { workspace_id: 1, id: 1 };
    expect(pending.row(agentsTable, key, undefined)?.row).to.include({ role: 'lead', position: 2 });
    expect(pending.row(agentsTable, { workspace_id: 2, id: 1 }, undefined), 'another workspace').to.equal(undefined);
    current = 1;
    expect(pending.row(agentsTable, key, undefined)).to.equal(undefined);
    expect(pending.row(agentsTable, key, { row: rowsAfter(events.slice(0, 1))(agentsTable, 1) })?.row).to.include({
      role: 'lead',
    });
  });

  it('cannot be told while an event is not known in clear', () => {
    const events = eventsOf([registered(1), draftOf(1, 0, 'lead'), draftOf(1, 0, 'chief')]);
    const [first, second, third] = events as [DomainEvent, DomainEvent, DomainEvent];
    let current = 1;
    const pending = new PendingChanges(agentsProjection, () => current);
    const key = { workspace_id: 1, id: 1 };
    const row = () => pending.row(agentsTable, key, { row: rowsAfter([first])(agentsTable, 1) });
    pending.expect(first.position);
    expect(row()?.row, 'it is written').to.include({ role: 'tester' });
    pending.expect(second.position);
    expect(row()).to.equal(undefined);
    pending.add(second);
    expect(row()?.row).to.include({ role: 'lead' });
    pending.expect(second.position);
    expect(row()?.row, 'it is known already').to.include({ role: 'lead' });
    pending.expect(third.position);
    expect(row()).to.equal(undefined);
    current = 3;
    expect(row()?.row, 'nothing is pending any more').to.include({ role: 'tester' });
  });

  it('cannot be told while there is an event that cannot be applied, and nothing is thrown', () => {
    const events = eventsOf([registered(1), draftOf(1, 0, 'lead'), draftOf(1, 0, 'chief')]);
    const fail = (): never => {
      throw new Error('cannot be applied');
    };
    const key = { workspace_id: 1, id: 1 };
    const projecting: Projection['project'] = (event) =>
      event.position === 2 ? fail() : agentsProjection.project(event);
    const applying: Projection['project'] = (event) =>
      agentsProjection.project(event).map((one) => (event.position === 2 ? { ...one, apply: fail } : one));
    for (const project of [projecting, applying]) {
      let current = 1;
      const pending = new PendingChanges({ ...agentsProjection, project }, () => current);
      const row = () => pending.row(agentsTable, key, { row: rowsAfter(events.slice(0, current))(agentsTable, 1) });
      for (const event of events) pending.add(event);
      expect([row(), row()]).to.deep.equal([undefined, undefined]);
      current = 2;
      expect(row()?.row, 'once it is written').to.include({ role: 'chief' });
    }
  });

  it('cannot be told after too many, until those are written', () => {
    const events = eventsOf([registered(1), ...Array.from({ length: 2_500 }, (_, n) => draftOf(1, 0, `role ${n}`))]);
    let current = 1;
    const pending = new PendingChanges(agentsProjection, () => current);
    for (const event of events) pending.add(event);
    const key = { workspace_id: 1, id: 1 };
    const kept = () => ({ row: rowsAfter(events.slice(0, current))(agentsTable, 1) });
    expect(pending.row(agentsTable, key, kept())).to.equal(undefined);
    current = 2_400;
    expect(pending.row(agentsTable, key, kept())).to.equal(undefined);
    current = events.length;
    expect(pending.row(agentsTable, key, kept())?.row).to.include({ role: 'role 2499' });
    const [more] = eventsOf([...events, draftOf(1, 0, 'again')].map(({ type, data }) => ({ type, data }))).slice(-1);
    pending.add(more as DomainEvent);
    expect(pending.row(agentsTable, key, kept())?.row).to.include({ role: 'again' });
  });

  it('cannot be told after too much, until that is written', () => {
    const large = 'x'.repeat(1_000_000);
    const events = eventsOf([registered(1), ...Array.from({ length: 9 }, (_, n) => draftOf(1, 4, `${n}${large}`))]);
    let current = 1;
    const pending = new PendingChanges(agentsProjection, () => current);
    const key = { workspace_id: 1, id: 1 };
    const told = () =>
      pending.row(agentTextsTable, key, { row: rowsAfter(events.slice(0, current))(agentTextsTable, 1) });
    for (const event of events.slice(0, 8)) pending.add(event);
    expect(told()?.row, 'seven million characters').to.include({ position: 8 });
    for (const event of events.slice(8)) pending.add(event);
    expect(told(), 'nine million').to.equal(undefined);
    current = events.length;
    expect(told()?.row).to.include({ position: 10 });
    const [more] = eventsOf([...events, draftOf(1, 4, large)].map(({ type, data }) => ({ type, data }))).slice(-1);
    pending.add(more as DomainEvent);
    expect(told()?.row).to.include({ position: 11 });
  });
});
