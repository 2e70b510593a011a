/** The process in which `rebuild.ts` measures one rebuild: `node rebuild-child.js <place and time as JSON>`. */
import { measureRebuild } from './rebuild.ts';
import type { Place } from './report.ts';

// Ends with the process that has started it.
process.on('disconnect', () => process.exit(1));
const { place, ms } = JSON.parse(process.argv[2] ?? '') as { place: Place; ms: number };
process.send?.(await measureRebuild(place, ms), () => process.exit());
