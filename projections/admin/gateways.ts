/** Gateways as they are now, and the latest probes of each. Both belong to the deployment. */
import { gatewayAdded, gatewayChanged, gatewayRemoved, gatewaysProbed } from '../../shared/events/admin/gateways.ts';
import { gatewaySessionControlled } from '../../shared/events/sessions.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineProjection, defineTable, insert, on, update } from '../projection.ts';

/** Probes that are kept of each gateway. */
export const KEPT_PROBES = 100;

export const gatewaysTable = defineTable(
  'gateways',
  {
    id: 'bigint',
    name: 'text',
    url: 'text',
    status: 'text',
    last_health_check: 'bigint?',
    token_set: 'boolean',
    is_primary: 'boolean',
    latency: 'bigint?',
    sessions_count: 'bigint',
    agents_count: 'bigint',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  { key: ['id'] },
);

export const gatewayProbesTable = defineTable(
  'gateway_probes',
  {
    gateway_id: 'bigint',
    /** The number of the probe, modulo the number of those that are kept: a new one takes the place of the oldest. */
    slot: 'int',
    name: 'text',
    status: 'text',
    latency: 'bigint?',
    error: 'text?',
    probed_at: 'bigint',
  },
  { key: ['gateway_id', 'slot'], indexes: ['position DESC, gateway_id'] },
);

export const gatewaysProjection = defineProjection({
  name: 'gateways',
  version: 1,
  tables: [gatewaysTable, gatewayProbesTable],
  handlers: [
    on(gatewayAdded, ({ data, meta }) => [
      insert(gatewaysTable, {
        id: data.gateway_id,
        name: data.name,
        url: data.url,
        status: 'unknown',
        last_health_check: null,
        token_set: data.token !== null,
        is_primary: data.is_primary,
        latency: null,
        sessions_count: 0,
        agents_count: 0,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(gatewayChanged, ({ data, meta }) => [
      update(gatewaysTable, { id: data.gateway_id }, (row) => ({
        ...row,
        name: data.name ?? row.name,
        url: data.url ?? row.url,
        status: data.status ?? row.status,
        last_health_check: data.last_seen === undefined ? row.last_health_check : data.last_seen,
        token_set: data.token_set ?? row.token_set,
        is_primary: data.is_primary ?? row.is_primary,
        latency: data.latency === undefined ? row.latency : data.latency,
        sessions_count: data.sessions_count ?? row.sessions_count,
        agents_count: data.agents_count ?? row.agents_count,
        updated_at: seconds(meta.at),
      })),
    ]),
    // Moves the position of the row, by which readers know that the gateway's sessions are to be asked for again.
    on(gatewaySessionControlled, ({ data }) => [update(gatewaysTable, { id: data.gateway_id }, (row) => ({ ...row }))]),
    on(gatewayRemoved, ({ data }) => [
      update(gatewaysTable, { id: data.gateway_id }, () => undefined),
      ...Array.from({ length: KEPT_PROBES }, (_, slot) =>
        update(gatewayProbesTable, { gateway_id: data.gateway_id, slot }, () => undefined),
      ),
    ]),
    on(gatewaysProbed, ({ data, meta }) =>
      data.results.flatMap(({ gateway_id, name, status, latency, error }) => {
        const key = { gateway_id, slot: data.probe % KEPT_PROBES };
        const probed_at = seconds(meta.at);
        return [
          change(gatewayProbesTable, key, () => ({ ...key, name, status, latency, error, probed_at })),
          // One that could not be reached has not been seen.
          update(gatewaysTable, { id: gateway_id }, (row) => ({
            ...row,
            status,
            latency,
            last_health_check: status === 'offline' ? row.last_health_check : probed_at,
            updated_at: probed_at,
          })),
        ];
      }),
    ),
  ],
});
