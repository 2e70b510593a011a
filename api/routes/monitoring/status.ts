/**
 * The state of the service in numbers. Data about the machine, and so about all tenants, is only for callers of the
 * default tenant whose workspace is not strictly isolated.
 */
import { settingValues } from '../../../queries/admin/settings.ts';
import {
  claudeSessions,
  dashboardOf,
  databaseProbe,
  databaseSize,
  sessionNumbers,
} from '../../../queries/monitoring/status.ts';
import * as contract from '../../../shared/contract/monitoring/status.ts';
import type { Identity } from '../../../shared/identity.ts';
import type { HostFacts } from '../../../shared/ports/monitoring/status.ts';
import { HOUR, seconds } from '../../../shared/time.ts';
import { within } from '../../../shared/waiting.ts';
import { defineRoute } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const MIB = 1_048_576;
const GIB = 1_073_741_824;
/** Time-out for the probe of the database, milliseconds; a slower response is reported as slow. */
const PROBE_MS = 3_000;
const SLOW_MS = 1_000;
const NOTHING = '0';

const percent = ({ total, available }: { readonly total: number; readonly available: number }): number =>
  total === 0 ? 0 : Math.round((100 * (total - available)) / total);
const gigabytes = (bytes: number): string => `${Math.round(bytes / GIB)}G`;
const megabytes = (bytes: number): number => Math.round(bytes / MIB);

function machineOf({ uptimeMs, memory, disk }: HostFacts) {
  return {
    uptime: uptimeMs,
    memory: {
      total: megabytes(memory.total),
      used: megabytes(memory.total - memory.available),
      available: megabytes(memory.available),
    },
    disk: disk
      ? {
          total: gigabytes(disk.total),
          used: gigabytes(disk.total - disk.available),
          available: gigabytes(disk.available),
          usage: `${percent(disk)}%`,
        }
      : NO_MACHINE.disk,
  };
}
const NO_MACHINE = {
  uptime: 0,
  memory: { total: 0, used: 0, available: 0 },
  disk: { total: NOTHING, used: NOTHING, available: NOTHING, usage: NOTHING },
};

/** Check of a used share: warning from 90 %, critical from 95 %. */
function shareCheck(
  name: string,
  share: { readonly total: number; readonly available: number } | null,
): contract.HealthCheck {
  if (!share) return { name, status: 'error', message: 'It could not be read.' };
  const used = percent(share);
  return { name, status: used >= 95 ? 'critical' : used >= 90 ? 'warning' : 'healthy', message: `${used}% is used.` };
}

async function databaseCheck(services: Services): Promise<contract.HealthCheck> {
  const name = 'Database';
  try {
    const ms = await within(PROBE_MS, databaseProbe(services.reads), 'the database');
    return ms > SLOW_MS
      ? { name, status: 'warning', message: 'The database responds slowly.' }
      : { name, status: 'healthy', message: 'The database responds.' };
  } catch (error) {
    services.log.warn({ err: error }, 'the database did not respond to a probe');
    return { name, status: 'unhealthy', message: 'The database does not respond.' };
  }
}

function processCheck({ rss, heapUsed, heapTotal }: HostFacts['process']): contract.HealthCheck {
  const used = rss / MIB;
  const exceeded = [800, 400].find((limit) => used > limit);
  return {
    name: 'Process Memory',
    status: exceeded === 800 ? 'critical' : exceeded === 400 ? 'warning' : 'healthy',
    message: `${Math.round(used)} MiB are resident${exceeded === undefined ? '' : `, more than ${exceeded}`}.`,
    detail: { rss, heapUsed, heapTotal },
  };
}

/** The overall status of several checks. */
export function overallOf(checks: readonly contract.HealthCheck[]): 'healthy' | 'warning' | 'degraded' | 'unhealthy' {
  const has = (...statuses: readonly contract.HealthCheck['status'][]) =>
    checks.some(({ status }) => statuses.includes(status));
  const database = checks.find(({ name }) => name === 'Database')?.status;
  // Without the database nothing can be served.
  if (has('error', 'critical') || database === 'unhealthy') return 'unhealthy';
  if (database === 'warning') return 'degraded';
  return has('warning') ? 'warning' : 'healthy';
}

async function healthOf(services: Services, isHouse: boolean) {
  const host = await services.host();
  const machine = () => [
    processCheck(host.process),
    shareCheck('Disk Space', host.disk),
    shareCheck('Memory Usage', host.memory),
  ];
  const checks = [await databaseCheck(services), ...(isHouse ? machine() : [])];
  const { version, uptime } = host.process;
  return { status: overallOf(checks), version, uptime, checks, timestamp: services.now() };
}

async function newestBackup({ backups, now }: Services) {
  const [newest] = await backups.list();
  if (!newest) return null;
  const { name, size, createdAt } = newest;
  return { name, size, age_hours: Math.max(0, Math.floor((seconds(now()) - createdAt) / HOUR)) };
}

const isPast = ({ reads }: Services): boolean => reads.past !== undefined;

async function overviewOf(services: Services, isHouse: boolean) {
  const now = async () => (isHouse ? machineOf(await services.host()) : NO_MACHINE);
  return { timestamp: services.now(), ...(!isPast(services) && (await now())), processes: [] };
}

/** Current data about the database that is not in the log. */
const databaseOf = async (services: Services, isHouse: boolean) => ({
  backup: isHouse ? await newestBackup(services) : null,
  dbSizeBytes: isHouse ? await databaseSize(services.reads) : 0,
});

async function gatewayOf({ reads, settings }: Services) {
  const { 'gateway.port': port } = await settingValues(reads, settings, ['gateway.port']);
  const none = { pid: null, uptime: 0, version: null, connections: 0, port_listening: false };
  return { running: false, port: Number(port), ...none };
}

async function capabilitiesOf(services: Services, identity: Identity, isHouse: boolean) {
  const { reads, settings } = services;
  const { 'general.interface_mode': interfaceMode } = await settingValues(reads, settings, ['general.interface_mode']);
  const userOf = async () => (isHouse ? (await services.host()).process.user : '');
  return {
    gateway: false,
    subscription: null,
    subscriptions: {},
    ...(!isPast(services) && { processUser: await userOf() }),
    interfaceMode,
    claudeSessions: await claudeSessions(reads, identity.workspace),
  };
}

/** Why some actions cannot read the past. */
const NO_PAST: Readonly<Partial<Record<(typeof contract.STATUS_ACTIONS)[number], string>>> = {
  health: 'this is the state of the processes and of the machine',
  models: 'the catalogue is part of the program',
};

export const statusRoute = defineRoute({
  method: 'get',
  path: '/api/status',
  noPast: ({ action }) => NO_PAST[action ?? 'overview'],
  summary: 'The state of the service in numbers',
  description:
    'overview: machine and sessions. dashboard: the same with counts of the workspace. health: checks with a verdict. models: a catalogue with prices. gateway: none is ever connected. capabilities: what clients may offer. The past has overview and dashboard without the machine, gateway, and capabilities.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'partly', prompts: 'none' },
  query: contract.statusQuery,
  responses: { 200: { description: 'What was asked for', schema: contract.statusResponse } },
  async respond({ query, identity, services, isOfDeployment }) {
    const { reads } = services;
    const isHouse = await isOfDeployment();
    switch (query.action ?? 'overview') {
      case 'overview': {
        const sessions = await sessionNumbers(reads, identity.workspace);
        return { ...(await overviewOf(services, isHouse)), sessions };
      }
      case 'dashboard': {
        const { sessions, db } = await dashboardOf(reads, identity.workspace, seconds(services.now()));
        const live = !isPast(services) && (await databaseOf(services, isHouse));
        return { ...(await overviewOf(services, isHouse)), sessions, db: { ...db, ...live } };
      }
      case 'health':
        return healthOf(services, isHouse);
      case 'models':
        return { models: contract.MODELS };
      case 'gateway':
        return gatewayOf(services);
      case 'capabilities':
        return capabilitiesOf(services, identity, isHouse);
    }
  },
});
