/** Older events: users were named as on display, fields in camelCase. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { z } from 'zod';
import { type AnyStoredRow, MemoryTables } from '../../projections/apply.ts';
import { projections } from '../../projections/index.ts';
import { EventUnreadableError } from '../../shared/errors.ts';
import { isSealed } from '../../shared/event-store/sealed-values.ts';
import { createEventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent, EventDefinition } from '../../shared/events/define.ts';
import { renamed } from '../../shared/events/field-names.ts';
import type { Actor } from '../../shared/events/metadata.ts';
import { framesOf } from '../../shared/events/monitoring/frames.ts';
import { upcast } from '../../shared/events/upcasters.ts';
import type { EventLog, LoggedEvent } from '../../shared/ports/event-log.ts';

const ann = { actor: { type: 'user', id: 7, name: 'ann' } } as const;
const scout = { actor: { type: 'agent', id: 3, name: 'agent:scout' } } as const;

/** Data of a type in a later version. */
function upcastTo(type: string, data: object, by: { readonly actor: Actor }, from: number, version: number) {
  const definition = catalogue.get(type) as EventDefinition;
  return upcast({ ...definition, version }, data as Readonly<Record<string, unknown>>, by, from);
}

describe('older versions of events', () => {
  it('of a task, a comment and a broadcast identify users by username', () => {
    for (const [type, field] of [
      ['TaskCommented', 'author'],
      ['TaskBroadcast', 'author'],
      ['TaskAssigned', 'by'],
    ] as const) {
      expect(upcastTo(type, { [field]: 'Ann Lee', n: 1 }, ann, 1, 2)).to.deep.equal({ [field]: 'ann', n: 1 });
      expect(upcastTo(type, { [field]: 'scout', n: 1 }, scout, 1, 2)).to.deep.equal({ [field]: 'scout', n: 1 });
    }
    for (const source of ['api', 'github']) {
      const created = upcastTo('TaskCreated', { source, task: { title: 't', createdBy: 'Ann Lee' } }, ann, 1, 2);
      expect(created).to.deep.equal({ source, task: { title: 't', createdBy: 'ann' } });
    }
    const spawned = { source: 'recurrence', task: { createdBy: 'scheduler' } };
    expect(upcastTo('TaskCreated', spawned, ann, 1, 2)).to.deep.equal(spawned);
  });

  it('of a task that moved to another project name both projects', () => {
    const was = { projectId: 1, projectName: 'General' };
    const is = { projectId: 2, projectName: 'Doors' };
    const moved = { before: was, task: is };
    const names = { from: 'General', to: 'Doors' };
    expect(upcastTo('TaskUpdated', moved, ann, 1, 3)).to.deep.equal({ ...moved, moved: names });
    // A change after the project was renamed had the names from before and after it.
    const renamed = { before: was, task: { ...was, projectName: 'All' } };
    expect(upcastTo('TaskUpdated', renamed, ann, 2, 3)).to.deep.equal(renamed);
  });

  it('of a subscription with erased names have none', () => {
    expect(upcastTo('TaskSubscribed', { names: '[erased]' }, ann, 1, 2)).to.deep.equal({ names: [] });
    expect(upcastTo('TaskSubscribed', { names: ['ann'] }, ann, 1, 2)).to.deep.equal({ names: ['ann'] });
  });

  it('of a message and a notification keep their names', () => {
    const message = { from: 'coordinator', to: 'scout' };
    expect(upcastTo('ChatMessageSent', message, ann, 1, 2)).to.deep.equal(message);
    const raised = { recipient: 'ann', title: 'New comment', message: 'Ann Lee commented' };
    expect(upcastTo('NotificationRaised', raised, ann, 1, 2)).to.deep.equal({ ...raised, by: null });
  });
});

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** A log that was written when event data was in camelCase, its keys, and what it meant then: rows and frames. */
interface Recorded {
  readonly keys: Readonly<Record<string, string>>;
  readonly log: readonly LoggedEvent[];
  readonly rows: Readonly<Record<string, readonly AnyStoredRow[]>>;
  readonly frames: readonly unknown[];
}
const recorded: Recorded = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../../test/golden/logs/alerts-and-workflows.json', import.meta.url)), 'utf8'),
);

function openRecorded() {
  const keys = new Map(Object.entries(recorded.keys).map(([person, key]) => [person, Buffer.from(key, 'base64')]));
  const unused = () => {
    throw new Error('only read here');
  };
  return createEventStore({
    log: undefined as unknown as EventLog,
    catalogue,
    counters: { take: unused },
    keys: { find: (person) => keys.get(person), findOrCreate: unused, create: unused },
  });
}
const decoded = (): Promise<DomainEvent[]> => {
  const store = openRecorded();
  return Promise.all(recorded.log.map((event) => store.decode(structuredClone(event))));
};
const firstLogged = (type: string): LoggedEvent => recorded.log.find((event) => event.type === type) as LoggedEvent;

describe('events with camelCase fields', () => {
  it('give the same rows and frames as when they were written', async () => {
    const events = await decoded();
    const tables = new MemoryTables();
    for (const projection of projections) tables.apply(projection, events);
    const rows = projections.flatMap((projection) =>
      projection.tables.map((table): [string, readonly unknown[]] => [table.name, tables.rows(table)]),
    );
    expect(asJson(Object.fromEntries(rows.filter(([, some]) => some.length > 0)))).to.deep.equal(recorded.rows);
    const frames = events.flatMap((event) => framesOf(catalogue.get(event.type) as EventDefinition, event));
    expect(asJson(frames)).to.deep.equal(recorded.frames);
  });

  it('are read with the field names of the interface, and keep the keys of client data', async () => {
    const events = await decoded();
    const updated = events.filter(({ type }) => type === 'WorkflowUpdated').map(({ data }) => data);
    expect(updated).to.deep.equal([
      { workflow_id: 1, task_prompt: 'Look again.', agent_role: null },
      { workflow_id: 1, timeout_seconds: 60 },
    ]);
    const [created, changed] = events.filter(({ stream }) => stream === 'alert-1-1').map(({ data }) => data);
    expect(created).to.deep.include({
      rule_id: 1,
      action_type: 'notification',
      action_config: { recipient: 'ann', actionType: 'kept', nested: { rule_id: 1, ruleId: 2 } },
    });
    expect(changed?.action_config).to.deep.equal({ recipient: 'bob', actionConfig: [{ taskPrompt: 1 }] });
  });

  it('have encrypted fields that open under their old names, and read as null without the key', async () => {
    expect(isSealed(firstLogged('AlertRuleCreated').data.actionConfig)).to.equal(true);
    const erased = (await decoded()).filter(({ stream }) => stream === 'alert-1-2');
    expect(erased.map(({ data }) => data.action_config)).to.deep.equal([null, undefined]);
    const moved = structuredClone(firstLogged('AlertRuleCreated'));
    const { actionConfig, ...data } = moved.data;
    const other = { ...moved, id: '00000000-0000-4000-8000-000000000009', data: { ...data, actionConfig } };
    await Promise.resolve(openRecorded().decode(other)).then(
      () => expect.fail('a sealed field was opened in another event'),
      (error: unknown) => expect(error).to.be.instanceOf(EventUnreadableError),
    );
  });

  it('are revealed as they were written', async () => {
    const { data } = await openRecorded().reveal(firstLogged('AlertRuleCreated'));
    expect(data).to.deep.include({ ruleId: 1, entityType: 'agent' });
    expect(data.actionConfig).to.deep.include({ recipient: 'ann' });
  });

  it('are renamed at every depth of the schema, but not inside records', () => {
    const schema = z.object({
      task_id: z.int(),
      steps: z.array(z.object({ template_id: z.int(), on_failure: z.string().optional() })),
      before: z.object({ due_date: z.int().nullable() }).nullable(),
      metadata: z.record(z.string(), z.unknown()),
    });
    const rename = renamed({ type: 'WorkflowUsed', schema: schema as unknown as EventDefinition['schema'] }, 1);
    const metadata = { taskId: 1, task_id: 2, steps: [{ templateId: 3 }] };
    const data = {
      taskId: 7,
      steps: [{ templateId: 1, onFailure: 'stop' }, { templateId: 2 }],
      before: { dueDate: 5 },
    };
    expect(rename?.({ ...data, metadata })).to.deep.equal({
      task_id: 7,
      steps: [{ template_id: 1, on_failure: 'stop' }, { template_id: 2 }],
      before: { due_date: 5 },
      metadata,
    });
    expect(rename?.({ ...data, before: null, metadata })).to.deep.include({ before: null });
  });

  it('are recognized by type and version', () => {
    const { schema } = catalogue.get('WorkflowUsed') as EventDefinition;
    expect(renamed({ type: 'WorkflowUsed', schema }, 2)).to.equal(undefined);
    expect(renamed({ type: 'TaskCreated', schema }, 1)).to.equal(undefined);
    expect(renamed({ type: 'TaskCreated', schema }, 3)).to.be.a('function');
  });

  it('are no longer written, except for a standup', () => {
    const fieldsOf = (schema: z.core.$ZodType): string[] => {
      if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return fieldsOf(schema.unwrap());
      if (schema instanceof z.ZodArray) return fieldsOf(schema.element);
      if (!(schema instanceof z.ZodObject)) return [];
      return Object.entries(schema.shape as z.core.$ZodShape).flatMap(([name, inner]) => [name, ...fieldsOf(inner)]);
    };
    const others = [...catalogue.values()].filter(({ schema }) => fieldsOf(schema).some((name) => /[A-Z]/.test(name)));
    expect(others.map(({ type }) => type)).to.deep.equal(['StandupGenerated']);
  });
});
