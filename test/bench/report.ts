/** Output of the benchmark: Markdown tables, the machine, databases to run on. */
import { cpus, release, totalmem } from 'node:os';
import pg from 'pg';
import { temporaryDirectory } from '../support/service-process.ts';

export const tableLine = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, n) => (n === 0 ? '---' : '---:'));
  return [head, rule, ...rows].map(tableLine).join('\n');
}

export function machine(): string {
  const [cpu] = cpus();
  return `${cpus().length} × ${cpu?.model ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Node ${process.version}`;
}

/** The value below which a share of the values lies. */
export const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
export const median = (values: readonly number[]): number => quantile(values, 0.5);

export async function timed<T>(work: () => Promise<T>): Promise<readonly [ms: number, result: T]> {
  const begun = performance.now();
  const result = await work();
  return [performance.now() - begun, result];
}

/** Where the stores of a measurement are. */
export interface Place {
  /** PostgreSQL; unset: PGlite in `dataDir`. */
  readonly url?: string;
  readonly dataDir: string;
  /** The log lies on an event store server. */
  readonly events?: { readonly url: string; readonly prefix: string };
}

/** With an empty place, which is removed afterwards: a database on the server at `base`, or a directory for PGlite. */
export async function inFreshPlace<T>(
  base: string | undefined,
  work: (place: { url?: string; dataDir: string }) => Promise<T>,
): Promise<T> {
  const directory = await temporaryDirectory();
  const fresh = base ? await freshBenchDatabase(base) : undefined;
  try {
    return await work({ dataDir: directory.path, ...(fresh && { url: fresh.url }) });
  } finally {
    await fresh?.drop();
    await directory.remove();
  }
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
