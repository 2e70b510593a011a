/**
 * `npm run bench [-- http|stream|start|append|rebuild]`: measurements, printed as Markdown. Without a name all of them.
 * `BENCH_DATABASE_URL` adds the PostgreSQL combinations, `BENCH_SECONDS` sets the length of an HTTP case.
 */
import { benchAppend } from './append.ts';
import { benchHttp, benchStart, benchStream, onServer } from './http.ts';
import { benchRebuild } from './rebuild.ts';
import { machine } from './report.ts';

const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  async http() {
    await benchHttp('embedded', {});
    await onServer(benchHttp);
  },
  async stream() {
    await benchStream('embedded', {});
    await onServer(benchStream);
  },
  start: benchStart,
  append: benchAppend,
  rebuild: benchRebuild,
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`unknown benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}`);
  process.exit(2);
}
console.log(`Machine: ${machine()}`);
for (const [name, bench] of Object.entries(BENCHES)) {
  if (wanted.length === 0 || wanted.includes(name)) await bench();
}
