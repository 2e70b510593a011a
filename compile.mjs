/**
 * Compiles the program without checking types, and puts it together: `npm run compile`. A step runs only if one of its
 * sources has changed since it last ran, by path, size and time of change.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const STAMP = 'dist/.compiled.json';
const PROGRAM = ['shared', 'commands', 'projections', 'queries', 'api', 'infra'];
const PACKAGES = ['package-lock.json', 'tsconfig.json', 'compile.mjs'];
const TSC = join('node_modules', 'typescript', 'bin', 'tsc');

const steps = [
  {
    command: [TSC, '-p', 'tsconfig.json', '--noCheck'],
    makes: 'dist/infra/bin.js',
    from: [...PROGRAM, 'client', 'test'],
  },
  {
    command: ['bundle.mjs'],
    makes: 'dist/bin/signalbox.js',
    from: [...PROGRAM, 'client', 'bundle.mjs', 'console/notices.mjs'],
  },
  { command: ['console/build.mjs'], makes: 'dist/console/index.html', from: ['console', 'client'] },
  { command: ['dist/infra/prepare.js'], makes: 'dist/database.gz', from: PROGRAM },
];

function* filesIn(path) {
  if (!statSync(path).isDirectory()) yield path;
  else for (const entry of readdirSync(path).sort()) if (entry !== 'node_modules') yield* filesIn(join(path, entry));
}

function stampOf(paths) {
  const names = createHash('sha256');
  const files = createHash('sha256').update(process.version);
  for (const path of [...PACKAGES, ...paths].flatMap((root) => [...filesIn(root)])) {
    const { size, mtimeMs } = statSync(path);
    names.update(`${path}\n`);
    files.update(`${path}\0${size}\0${mtimeMs}\n`);
  }
  return { names: names.digest('hex'), files: files.digest('hex') };
}

const done = existsSync(STAMP) ? JSON.parse(readFileSync(STAMP, 'utf8')) : {};
for (const { command, makes, from } of steps) {
  const stamp = stampOf(from);
  if (done[makes]?.files === stamp.files && existsSync(makes)) continue;
  // The compiler would leave the modules of a file that was removed or moved.
  if (command[0] === TSC && done[makes]?.names !== stamp.names) rmSync('dist', { recursive: true, force: true });
  const { status } = spawnSync(process.execPath, command, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
  done[makes] = stamp;
  writeFileSync(STAMP, JSON.stringify(done));
}
