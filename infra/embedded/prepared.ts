/**
 * A database directory with the tables of the service, in one compressed file that the build writes
 * (`infra/prepare.ts`). A first start unpacks it, because initdb and creating the tables take seconds, and initdb takes
 * memory that the process cannot release.
 *
 * The file, gzipped: a line of JSON (`Header`), then the bytes of the files in its order.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { CODE } from '../version.ts';

interface Header {
  /** Version of PGlite: another one may not be able to read these files. */
  readonly engine: string;
  /** Version of the program part that built it; the build builds it again when this changes. */
  readonly maker: string;
  readonly directories: readonly string[];
  /** Path and number of bytes. */
  readonly files: readonly (readonly [path: string, bytes: number])[];
}

export const PREPARED = new URL('database.gz', CODE);
const NEWLINE = 10;

function engineVersion(): string {
  const manifest = new URL('../package.json', import.meta.resolve('@electric-sql/pglite'));
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}

/** The file's header and its contents; undefined if there is none for this version of PGlite. */
function readPrepared(file: URL): { readonly header: Header; readonly bytes: Buffer } | undefined {
  let packed: Buffer;
  try {
    packed = readFileSync(file);
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return undefined;
    throw error;
  }
  const content = gunzipSync(packed);
  const end = content.indexOf(NEWLINE);
  const header = JSON.parse(content.toString('utf8', 0, end)) as Header;
  return header.engine === engineVersion() ? { header, bytes: content.subarray(end + 1) } : undefined;
}

/** Whether the file exists for this version of PGlite and this maker. */
export const isPrepared = (maker: string, file = PREPARED): boolean => readPrepared(file)?.header.maker === maker;

/** Writes the file from a database directory that no process has open. */
export function pack(directory: string, maker: string, file = PREPARED): void {
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true }).map((entry) => ({
    path: relative(directory, join(entry.parentPath, entry.name)),
    isDirectory: entry.isDirectory(),
  }));
  // A directory must come before its contents.
  const directories = paths.flatMap(({ path, isDirectory }) => (isDirectory ? [path] : [])).sort();
  const names = paths.flatMap(({ path, isDirectory }) => (isDirectory ? [] : [path])).sort();
  const files = names.map((path) => [path, statSync(join(directory, path)).size] as const);
  const header: Header = { engine: engineVersion(), maker, directories, files };
  const contents = names.map((path) => readFileSync(join(directory, path)));
  // Renamed, because a service may be reading it.
  const unfinished = new URL(`${file.href}.${process.pid}`);
  writeFileSync(unfinished, gzipSync(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...contents])));
  renameSync(unfinished, file);
}

/** Unpacks the file to `directory`, which must not exist; false if there is no file for this PGlite version. */
export function unpack(directory: string, file = PREPARED): boolean {
  const prepared = readPrepared(file);
  if (prepared === undefined) return false;
  const { header, bytes } = prepared;
  mkdirSync(directory, { mode: 0o700 });
  for (const path of header.directories) mkdirSync(join(directory, path), { mode: 0o700 });
  let offset = 0;
  for (const [path, length] of header.files) {
    writeFileSync(join(directory, path), bytes.subarray(offset, offset + length), { mode: 0o600 });
    offset += length;
  }
  return true;
}
