/** Starts the stand-in as a process of its own and prints its connection string. For tests only: `node … [port]`. */
import { startEventStoreStandIn } from './eventstore-stand-in.ts';

const port = process.argv[2];
const standIn = await startEventStoreStandIn(port === undefined ? {} : { port: Number(port) });
process.stdout.write(`${standIn.url}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    standIn.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
        process.exit(1);
      },
    );
  });
}
