/**
 * Puts the program into a few files, `dist/bin/signalbox.js` first: loading it takes a third of the time that the 1,500
 * modules take. Part of `compile.mjs`.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';
import { noticesOf } from './console/notices.mjs';

const OUT = 'dist/bin';

rmSync(OUT, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: { signalbox: 'dist/infra/bin.js', worker: 'dist/infra/embedded/worker.js' },
  outdir: OUT,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // They find files of theirs by their own place, or are loaded only where they are needed.
  external: [
    '@electric-sql/pglite',
    '@eventstore/db-client',
    'argon2',
    'ioredis',
    'msgpackr-extract',
    'pg-native',
    'protobufjs',
  ],
  // Its main file is CommonJS, whose names an `import()` of a bundle would not have.
  alias: { bullmq: 'bullmq/dist/esm/index.js' },
  // As in newer versions of Node. Without it, `pg` makes a Response to find out where it runs, which loads all of fetch.
  define: { navigator: JSON.stringify({ userAgent: `Node.js/${process.versions.node.split('.')[0]}` }) },
  // CommonJS packages ask for Node's modules by `require`.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module';const require = requireFrom(import.meta.url);",
  },
  sourcemap: true,
  sourcesContent: false,
  metafile: true,
  logLevel: 'warning',
});

writeFileSync(
  `${OUT}/THIRD-PARTY-NOTICES.txt`,
  noticesOf(Object.keys(metafile.inputs), readFileSync('LICENSE.unicode', 'utf8').trim()),
);
