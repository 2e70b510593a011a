/** The location of the code, and its version, from package.json. */
import { readFileSync } from 'node:fs';

/** The parent folder of the top-level source folders. A bundle (`bundle.mjs`) is in a folder next to them. */
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
