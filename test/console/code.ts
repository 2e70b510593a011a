/** Code of the console for tests without a browser: bundled as for browsers, and loaded by Node. */
import { createRequire } from 'node:module';

interface Built {
  readonly outputFiles: readonly [{ readonly contents: Uint8Array }];
}

// Its type definitions declare WebAssembly, as infra/embedded/embedded.ts does.
const { build } = createRequire(import.meta.url)('esbuild') as {
  readonly build: (options: Readonly<Record<string, unknown>>) => Promise<Built>;
};

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
  const [{ contents }] = outputFiles;
  return (await import(`data:text/javascript;base64,${Buffer.from(contents).toString('base64')}`)) as T;
}
