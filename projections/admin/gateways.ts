/** Gateways, and the latest probes of each. Both belong to the deployment. */
import { gatewaySchema } from '../../shared/contract/admin/gateways.ts';
import { gatewayAdded, gatewayChanged, gatewayRemoved, gatewaysProbed } from '../../shared/events/admin/gateways.ts';
import { gatewaySessionControlled } from '../../shared/events/sessions.ts';
import { seconds } from '../../shared/time.ts';
import { columnsFor } from '../columns.ts';
import { change, defineProjection, defineTable, insert, on, remove, set, update } from '../projection.ts';

/** Number of probes that are kept per gateway. */
export const KEPT_PROBES = 100;

export const gatewaysTable = defineTable(
  'gateways',
  {
    ...columnsFor(gatewaySchema.omit({ host: true, port: true, token: true })),
    is_primary: 'boolean',
  },
  { key: ['id'] },
);

export const gatewayProbesTable = defineTable(
  'gateway_probes',
  {
    gateway_id: 'bigint',
    /** The number of the probe modulo `KEPT_PROBES`: a new probe replaces the oldest. */
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
    on(gatewayAdded, ({ data: { gateway_id: id, name, url, token, is_primary }, meta }) => [
      insert(gatewaysTable, {
        id,
        name,
        url,
        status: 'unknown',
        last_health_check: null,
        last_seen: null,
        token_set: token !== null,
        is_primary,
        latency: null,
        sessions_count: 0,
        agents_count: 0,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(gatewayChanged, ({ data: { gateway_id: id, bare: _, token: __, ...changes }, meta }) => [
      set(gatewaysTable, { id }, meta, changes),
    ]),
    // Moves the position of the row, so that readers request the gateway's sessions again.
    on(gatewaySessionControlled, ({ data }) => [update(gatewaysTable, { id: data.gateway_id }, (row) => ({ ...row }))]),
    on(gatewayRemoved, ({ data }) => [
      remove(gatewaysTable, { id: data.gateway_id }),
      ...Array.from({ length: KEPT_PROBES }, (_, slot) =>
        remove(gatewayProbesTable, { gateway_id: data.gateway_id, slot }),
      ),
    ]),
    on(gatewaysProbed, ({ data, meta }) =>
      data.results.flatMap(({ gateway_id, name, status, latency, error }) => {
        const key = { gateway_id, slot: data.probe % KEPT_PROBES };
        const probed_at = seconds(meta.at);
        return [
          change(gatewayProbesTable, key, () => ({ ...key, name, status, latency, error, probed_at })),
          update(gatewaysTable, { id: gateway_id }, (row) => ({
            ...row,
            status,
            latency,
            last_health_check: probed_at,
            last_seen: status === 'offline' ? row.last_seen : probed_at,
            updated_at: probed_at,
          })),
        ];
      }),
    ),
  ],
});
