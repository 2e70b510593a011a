/** Where the code is, and its version, from package.json. */
import { readFileSync } from 'node:fs';

/** The folder of the rooms. A bundle (`bundle.mjs`) is in a folder beside them, like this one. */
export const CODE = new URL('../', import.meta.url);

function findVersion(): string {
  // Above `dist` in a build.
  for (const place of ['package.json', '../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(place, CODE), 'utf8'));
      if (name === 'signalbox') return String(version);
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}

export const VERSION = findVersion();
