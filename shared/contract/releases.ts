/** Whether a newer release is available. */
import { z } from 'zod';

export const releaseCheckResponse = z.object({
  updateAvailable: z.boolean(),
  currentVersion: z.string(),
  latestVersion: z.string().optional().describe('absent when it is not known'),
  releaseUrl: z.string().optional(),
  releaseNotes: z.string().optional(),
  deploymentMode: z.enum(['docker', 'bare-metal']),
  error: z.string().optional().describe('why the latest release is not known'),
});

/** The numbers of a version, without the part after a hyphen or a plus sign; undefined: there are none. */
function numbersOf(version: string): number[] | undefined {
  const [core = ''] = version.trim().replace(/^v/i, '').split(/[-+]/, 1);
  return /^\d{1,9}(\.\d{1,9}){0,9}$/.test(core) ? core.split('.').map(Number) : undefined;
}

/** Whether a version comes after another: compared number by number; missing numbers count as 0. */
export function isNewer(version: string, than: string): boolean {
  const [a, b] = [numbersOf(version), numbersOf(than)];
  if (!a || !b) return false;
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}
