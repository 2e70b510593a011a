/** The version of this build, from package.json. */
import { readFileSync } from 'node:fs';

function findVersion(): string {
  // dist/infra/version.js in a build, infra/version.ts in the sources.
  for (const place of ['../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8'));
      if (name === 'signalbox') return String(version);
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}

export const VERSION = findVersion();
