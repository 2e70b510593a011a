/** Output of the benchmark: Markdown tables, the machine, databases to run on. */
import { cpus, release, totalmem } from 'node:os';
import pg from 'pg';

export const tableLine = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, n) => (n === 0 ? '---' : '---:'));
  return [head, rule, ...rows].map(tableLine).join('\n');
}

export function machine(): string {
  const [cpu] = cpus();
  return `${cpus().length} × ${cpu?.model ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Node ${process.version}`;
}

/** An empty database on the server at `base`. */
export async function freshBenchDatabase(base: string): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `signalbox_bench_${process.pid}_${Date.now()}`;
  const admin = async (statement: string) => {
    const client = new pg.Client({ connectionString: base });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  await admin(`CREATE DATABASE ${name}`);
  const url = new URL(base);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}
