/** Code of the console for tests without a browser: bundled as for browsers, and loaded by Node. */
import { build } from 'esbuild';

/** @param path within `console/` */
export async function consoleCode<T>(path: string): Promise<T> {
  const { outputFiles } = await build({
    entryPoints: [`console/${path}`],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    jsx: 'automatic',
    jsxImportSource: 'preact',
  });
  const [{ contents } = { contents: new Uint8Array() }] = outputFiles;
  return (await import(`data:text/javascript;base64,${Buffer.from(contents).toString('base64')}`)) as T;
}
