/** Runs the service with the seeded fortnight, for looking at the console: `npm run console:show`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../infra/config.ts';
import { createLogger } from '../../infra/logging.ts';
import { startService } from '../../infra/main.ts';
import { PASSWORD, seed, turnBack } from './seed.ts';

const KEY = 'show-key-0123456789abcdef';
const dataDir = await mkdtemp(join(tmpdir(), 'sbx-show-'));
const config = readConfig({
  PORT: '3100',
  DATA_DIR: dataDir,
  LOG_LEVEL: 'warn',
  API_KEY: KEY,
  AUTH_USER: 'admin',
  AUTH_PASS: PASSWORD,
  MC_DISABLE_RATE_LIMIT: '1',
  ...process.env,
});
const clock = turnBack();
const service = await startService(config, createLogger(config.logLevel), 'all', { showCredentials: () => undefined });
await seed(service.url as string, KEY, clock);
clock.restore();
console.log(`${service.url} as admin, mara or viktor, with the password "${PASSWORD}"`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    service
      .close()
      .then(() => rm(dataDir, { recursive: true, force: true }))
      .then(() => process.exit(0))
      .catch((error: unknown) => {
        console.error(error);
        process.exit(1);
      });
  });
}
