/** `/metrics`: the process, read models, the log and its tree. Requests are counted by the API, streams by its hub. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { projections } from '../projections/index.ts';
import { schemaOf } from '../projections/projection.ts';
import { within } from '../shared/waiting.ts';
import type { Core } from './core.ts';
import { addTreeMetrics } from './proof/state.ts';
import type { Projector } from './read-models/projector.ts';

/** @param projector of this process */
export function createMetrics(core: Core, projector: Projector | undefined): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'signalbox_projection_position',
    help: 'Log position that a read model has reached, as last seen by this process',
    labelNames: ['projection'],
    registers: [registry],
    collect() {
      for (const projection of projections)
        this.set({ projection: projection.name }, core.positions.shown(schemaOf(projection)));
    },
  });
  new Gauge({
    name: 'signalbox_log_position',
    help: 'Position of the last event of the log',
    registers: [registry],
    async collect() {
      // An unavailable store must not block the other metrics.
      const head = await within(1_000, core.eventLog.head(), 'the event log').catch(() => Number.NaN);
      this.set(head);
    },
  });
  new Gauge({
    name: 'signalbox_projection_events_applied',
    help: 'Events that this process has applied to a read model since it started',
    labelNames: ['projection'],
    registers: [registry],
    collect() {
      for (const status of projector?.statuses ?? []) this.set({ projection: status.projection }, status.applied);
    },
  });
  new Gauge({
    name: 'signalbox_projection_stuck',
    help: '1 while a read model led by this process is stuck at an event that it cannot apply',
    labelNames: ['projection'],
    registers: [registry],
    collect() {
      for (const status of projector?.statuses ?? []) this.set({ projection: status.projection }, status.stuck ? 1 : 0);
    },
  });
  addTreeMetrics(registry, core.database.pool);
  return registry;
}
