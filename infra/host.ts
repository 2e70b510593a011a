/** The machine and the process (`shared/ports/monitoring/status.ts`). */
import { statfs } from 'node:fs/promises';
import { freemem, totalmem, uptime, userInfo } from 'node:os';
import type { ReadHost } from '../shared/ports/monitoring/status.ts';
import { VERSION } from './version.ts';

/** @param dataDir directory whose disk is measured; if it does not exist, that of the working directory */
export const readHostOf =
  (dataDir: string): ReadHost =>
  async () => {
    const { rss, heapUsed, heapTotal } = process.memoryUsage();
    const disk = await statfs(dataDir)
      .catch(() => statfs('.'))
      .catch(() => null);
    return {
      uptimeMs: Math.round(uptime() * 1_000),
      memory: { total: totalmem(), available: freemem() },
      disk: disk && { total: disk.blocks * disk.bsize, available: disk.bavail * disk.bsize },
      process: { uptime: process.uptime(), rss, heapUsed, heapTotal, user: nameOfUser(), version: VERSION },
    };
  };

/** A container may run under an id that has no name. */
function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_SYSTEM_ERROR') throw error;
    return String(process.getuid?.() ?? '');
  }
}
