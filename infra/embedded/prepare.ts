/** Part of the build: makes the database that first starts unpack (`prepared.ts`), unless it is there. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isPrepared, PREPARED, pack } from './prepared.ts';

const code = ['worker.js', 'prepared.js'].map((name) => readFileSync(new URL(name, import.meta.url)));
const maker = createHash('sha256').update(Buffer.concat(code)).digest('hex').slice(0, 16);
if (!isPrepared(maker)) {
  rmSync(PREPARED, { force: true });
  const { openEmbedded } = await import('./embedded.ts');
  const dataDir = mkdtempSync(join(tmpdir(), 'sbx-'));
  const complain = (fields: object, message: string) => console.error(message, fields);
  const database = await openEmbedded({ dataDir, log: { info: () => undefined, warn: complain, error: complain } });
  await database.close();
  pack(join(dataDir, 'pg'), maker);
  rmSync(dataDir, { recursive: true, force: true });
}
