/** Gateways of the deployment, and the history of their health. */
import { gatewaysProjection, gatewaysTable } from '../../projections/admin/gateways.ts';
import type { GatewayRecord } from '../../shared/contract/admin/gateways.ts';
import type { GatewayStatus } from '../../shared/ports/admin/gateways.ts';
import { MASK } from '../../shared/secrets.ts';
import { type Reads, tables } from '../reads.ts';
import { type Executed, type Records, rowAfter } from '../records.ts';

const own = (reads: Reads) => tables(reads, gatewaysProjection);

type GatewayRow = Awaited<ReturnType<typeof rowsOf>>[number];
const rowsOf = (reads: Reads) =>
  own(reads).selectFrom('gateways').selectAll().orderBy('is_primary', 'desc').orderBy('name').orderBy('id').execute();

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'https:': 443, 'wss:': 443 };

function recordOf({ position: _, ...row }: GatewayRow): GatewayRecord {
  const { protocol, hostname, port } = new URL(row.url);
  return {
    ...row,
    host: hostname,
    port: port === '' ? (DEFAULT_PORTS[protocol] ?? 80) : Number(port),
    token: row.token_set ? MASK : '',
    is_primary: row.is_primary ? 1 : 0,
  };
}

/** The primary gateway first, then by name. */
export const listGateways = async (reads: Reads): Promise<GatewayRecord[]> => (await rowsOf(reads)).map(recordOf);

/** A gateway after a command. @throws AppError 404 when it has been removed */
export const gatewayAfter = async (records: Records, id: number, executed: Executed): Promise<GatewayRecord> =>
  recordOf(await rowAfter(records, 'Gateway', [gatewaysProjection, gatewaysTable], { id }, executed, { mixed: true }));

/**
 * Identifies the current state of the primary gateway: differs once it is changed, probed, or sent an action on a
 * session. Undefined: there is none.
 */
export async function primaryVersion(reads: Reads): Promise<string | undefined> {
  const row = await own(reads)
    .selectFrom('gateways')
    .select(['id', 'position'])
    .where('is_primary', '=', true)
    .executeTakeFirst();
  return row && `${row.id}.${row.position}`;
}

/** Rows of the history. */
const HISTORY = 100;

/** The latest probes over all gateways, newest first, grouped by gateway. */
export async function gatewayHistory(reads: Reads) {
  const rows = await own(reads)
    .selectFrom('gateway_probes')
    .selectAll()
    .orderBy('position', 'desc')
    .orderBy('gateway_id')
    .limit(HISTORY)
    .execute();
  const names = new Map(rows.toReversed().map(({ gateway_id, name }) => [gateway_id, name]));
  return [...new Set(rows.map(({ gateway_id }) => gateway_id))].map((gatewayId) => ({
    gatewayId,
    name: names.get(gatewayId) ?? '',
    entries: rows
      .filter(({ gateway_id }) => gateway_id === gatewayId)
      .map(({ status, latency, probed_at, error }) => ({
        status: status as GatewayStatus,
        latency,
        probed_at,
        ...(error !== null && { error }),
      })),
  }));
}
