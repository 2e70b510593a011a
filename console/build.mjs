/**
 * Builds the console into `dist/console`: a page, and scripts and styles whose names change with their content, so that
 * browsers may keep them for ever. `{base}` in the page is the path below which the service is served, and is filled in
 * by it. `--watch` builds again after each change and does not end.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { context } from 'esbuild';
import { noticesOf } from './notices.mjs';

const OUT = 'dist/console';

const page = {
  name: 'page',
  setup({ onStart, onEnd }) {
    onStart(() => {
      rmSync(OUT, { recursive: true, force: true });
      mkdirSync(OUT, { recursive: true });
    });
    onEnd(({ metafile, errors }) => {
      if (errors.length > 0 || !metafile) return;
      const built = Object.entries(metafile.outputs);
      const addressOf = (source) => {
        const [file] = built.find(([, { entryPoint }]) => entryPoint === source) ?? [];
        return `{base}/console/${basename(file)}`;
      };
      const html = readFileSync('console/index.html', 'utf8').replace(/%([\w./-]+)%/g, (_, source) =>
        addressOf(source),
      );
      writeFileSync(`${OUT}/index.html`, html);
      writeFileSync(`${OUT}/THIRD-PARTY-NOTICES.txt`, noticesOf(Object.keys(metafile.inputs)));
    });
  },
};

const building = await context({
  entryPoints: ['console/main.tsx', 'console/style.css', 'console/icon.svg'],
  outdir: OUT,
  outbase: 'console',
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  loader: { '.svg': 'copy' },
  bundle: true,
  splitting: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  metafile: true,
  logLevel: 'warning',
  plugins: [page],
});
if (process.argv.includes('--watch')) {
  await building.watch();
} else {
  await building.rebuild();
  await building.dispose();
}
