/**
 * `npm run bench [-- http|stream|queue|start|append|rebuild|day|tokens|proof|past|console]`: measurements, printed as Markdown. Without a name all of them.
 * `BENCH_DATABASE_URL` adds PostgreSQL, `BENCH_EVENTSTORE_URL` appends and rebuilds on an event store server, and with
 * `BENCH_REDIS_URL` the cluster. `BENCH_SECONDS` sets the length of an HTTP case, `BENCH_CASES` selects cases by a
 * regular expression over their names.
 */
import { benchAppend, benchAppendEventStore } from './append.ts';
import { benchConsole } from './console.ts';
import { benchDay } from './day.ts';
import { combinations } from './deployment.ts';
import { benchHttp, benchStart, benchStream } from './http.ts';
import { benchPast } from './past.ts';
import { benchProof } from './proof.ts';
import { benchQueue } from './queue.ts';
import { benchRebuild } from './rebuild.ts';
import { machine } from './report.ts';
import { benchTokens } from './tokens.ts';

const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  async http() {
    for (const combination of combinations()) await benchHttp(combination);
  },
  async stream() {
    for (const combination of combinations()) await benchStream(combination);
  },
  async queue() {
    for (const combination of combinations()) await benchQueue(combination);
  },
  start: benchStart,
  async append() {
    await benchAppend();
    await benchAppendEventStore();
  },
  rebuild: benchRebuild,
  async day() {
    for (const combination of combinations()) await benchDay(combination);
  },
  tokens: benchTokens,
  proof: benchProof,
  past: benchPast,
  console: benchConsole,
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
