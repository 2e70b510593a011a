/** Archives the log of a running service up to a time, and ends itself with SIGKILL at a step: `archive-child.js STEP TIME`. */

import { readConfig } from '../../infra/config.ts';
import { openCore } from '../../infra/core.ts';
import { systemContext } from '../../infra/credentials/first-start.ts';
import { createLogger } from '../../infra/logging.ts';
import { archiveParts, planArchive } from '../../infra/tools/archive.ts';

const [, , step, time] = process.argv;
const core = await openCore(readConfig(process.env), createLogger('silent'), { attach: true });
const parts = await planArchive(core, Number(time));
const end = () => process.kill(process.pid, 'SIGKILL');
await archiveParts(core, systemContext('cli'), parts, {
  onStep: (now) => {
    if (now === step) end();
  },
  onProgress: (phase, position, target) => {
    // In the middle of its work.
    if (phase.startsWith('writing') && step === 'writing' && position > target / 2) end();
    if (phase.startsWith('removing') && step === 'dropping' && position > target / 2) end();
  },
});
await core.close();
