/** `/metrics`: the process, read models, the log and its tree. Requests are counted by the API, streams by its hub. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { projections } from '../projections/index.ts';
import { schemaOf } from '../projections/projection.ts';
import { within } from '../shared/waiting.ts';
import type { Core } from './core.ts';
import { addTreeMetrics } from './proof/state.ts';
import type { ProjectionStatus, Projector } from './read-models/projector.ts';

/** @param projector of this process */
export function createMetrics({ positions, eventLog, database }: Core, projector: Projector | undefined): Registry {
  const register = new Registry();
  collectDefaultMetrics({ register });
  /** A value for each read model. */
  const perModel = (name: string, help: string, valuesOf: () => readonly (readonly [string, number])[]) =>
    new Gauge({
      name,
      help,
      registers: [register],
      labelNames: ['projection'],
      collect() {
        for (const [projection, value] of valuesOf()) this.set({ projection }, value);
      },
    });
  const led = (of: (status: ProjectionStatus) => number) => () =>
    (projector?.statuses ?? []).map((status) => [status.projection, of(status)] as const);
  perModel(
    'signalbox_projection_position',
    'Log position that a read model has reached, as last seen by this process',
    () => projections.map((projection) => [projection.name, positions.shown(schemaOf(projection))]),
  );
  new Gauge({
    name: 'signalbox_log_position',
    help: 'Position of the last event of the log',
    registers: [register],
    async collect() {
      // An unavailable store must not block the other metrics.
      this.set(await within(1_000, eventLog.head(), 'the event log').catch(() => Number.NaN));
    },
  });
  perModel(
    'signalbox_projection_events_applied',
    'Events that this process has applied to a read model since it started',
    led(({ applied }) => applied),
  );
  perModel(
    'signalbox_projection_stuck',
    '1 while a read model led by this process is stuck at an event that it cannot apply',
    led(({ stuck }) => (stuck ? 1 : 0)),
  );
  addTreeMetrics(register, database.pool);
  return register;
}
