/**
 * The URL under which clients reach the service (PUBLIC_URL). It has a path if a proxy serves other programs under the
 * same host. The service responds to paths with and without it, so the proxy may remove the path or pass it on.
 */
import type { IncomingMessage } from 'node:http';

/** Without a slash at its end. */
export type PublicUrl = { readonly publicUrl?: string | undefined };

/** The path of the public URL, such as `/signalbox`; empty if it has none. */
export const basePathOf = ({ publicUrl }: PublicUrl): string =>
  publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, '');

/** Removes the path of the public URL from the target of a request. */
export function pathRemover(settings: PublicUrl): (req: Pick<IncomingMessage, 'url'>) => void {
  const base = basePathOf(settings);
  return (req) => {
    const { url = '' } = req;
    if (base === '' || !url.startsWith(base) || !/^[/?]?$/.test(url.charAt(base.length))) return;
    const rest = url.slice(base.length);
    req.url = rest.startsWith('/') ? rest : `/${rest}`;
  };
}

/** @throws Error if the path of the public URL could be a path of the service, which would make requests ambiguous */
export function checkBasePath(settings: PublicUrl, paths: Iterable<string>): void {
  const [, first = ''] = basePathOf(settings).split('/');
  for (const path of paths) {
    if (first !== '' && path.split('/')[1] === first)
      throw new Error(
        `PUBLIC_URL: its path begins with /${first}, which is a path of the service itself. Choose another path, such as /signalbox.`,
      );
  }
}
