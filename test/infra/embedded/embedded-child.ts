/**
 * A process of its own for `embedded.test.ts`: `node embedded-child.js <mode> <data directory>`. It talks to its parent by
 * IPC and is meant to be killed.
 *
 * - `insert`: opens the database, sends the numbers in it, and inserts more on four connections, for ever; sends each one
 *   after its acknowledgement.
 * - `open`: opens the database and sends `opened`, or the error's message.
 * - `lock`: sends `up`; on every message tries to take the lock and sends `held` or the error's message.
 */
import { lockDirectory } from '../../../infra/embedded/directory-lock.ts';

const [mode, dataDir = ''] = process.argv.slice(2);
const send = (message: string | number | number[]): void => {
  process.send?.(message);
};
const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };

// Ten processes are started that only take the lock: they need not load the database.
if (mode === 'insert') {
  const [{ openEmbedded }, { default: pg }] = await Promise.all([
    import('../../../infra/embedded/embedded.ts'),
    import('pg'),
  ]);
  const embedded = await openEmbedded({ dataDir, log });
  const pool = new pg.Pool({ host: embedded.socketDir, port: embedded.port, user: 'postgres', max: 4 });
  const { rows } = await pool.query<{ n: number }>('SELECT n FROM numbers ORDER BY n');
  send(rows.map(({ n }) => n));
  let next = (rows.at(-1)?.n ?? 0) + 1;
  const insert = async (): Promise<never> => {
    for (;;) {
      const n = next++;
      await pool.query('INSERT INTO numbers VALUES ($1)', [n]);
      send(n);
    }
  };
  await Promise.all([insert(), insert(), insert(), insert()]);
} else if (mode === 'open') {
  const { openEmbedded } = await import('../../../infra/embedded/embedded.ts');
  await openEmbedded({ dataDir, log }).then(
    () => send('opened'),
    (error: unknown) => send(reason(error)),
  );
} else if (mode === 'lock') {
  process.on('message', () => {
    lockDirectory(dataDir, dataDir).then(
      () => send('held'),
      (error: unknown) => send(reason(error)),
    );
  });
  send('up');
}
