/** The address: view, filters and moment. All of them are in the URL, so a shared link shows the same page. */
import { BASE } from './base.ts';
import { store, useStore } from './store.ts';

export interface Address {
  /** Segments of the path below `BASE`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

/** Query parameters that stay when the view changes: the moment and the two marks. */
const KEPT = ['at', 'from', 'to', 'range'];

/** A path without `BASE`, which a page opened past the proxy does not have. */
const within = (path: string): string =>
  path === BASE || path.startsWith(`${BASE}/`) ? path.slice(BASE.length) : path;

const read = (): Address => ({
  path: within(location.pathname).split('/').filter(Boolean).map(decodeURIComponent),
  query: new URLSearchParams(location.search),
});

const current = store<Address>(read());
addEventListener('popstate', () => current.set(read()));

export const useAddress = (): Address => useStore(current);
export const address = (): Address => current.get();
export const watchAddress = (listener: () => void): (() => void) => current.watch(listener);

type Values = Readonly<Record<string, string | number | undefined>>;

/** The URL of a view, at the moment that is shown now. `undefined` removes a parameter. */
export function urlOf(path: string, values: Values = {}): string {
  const query = new URLSearchParams();
  for (const name of KEPT) {
    const value = current.get().query.get(name);
    if (value !== null) query.set(name, value);
  }
  return withValues(BASE + path, query, values);
}

function withValues(path: string, query: URLSearchParams, values: Values): string {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === '') query.delete(name);
    else query.set(name, String(value));
  }
  const search = query.toString();
  return search ? `${path}?${search}` : path;
}

export function go(url: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  const before = current.get().path.join('/');
  current.set(read());
  if (current.get().path.join('/') !== before) scrollTo(0, 0);
}

/** The current URL with other parameters. */
export const urlWith = (values: Values): string =>
  withValues(location.pathname, new URLSearchParams(location.search), values);

export const setParams = (values: Values, options?: { replace?: boolean }): void => go(urlWith(values), options);

/** Follows links within the console without loading a page. */
addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(`${BASE}/`) || /^\/(docs|api|metrics|health|console)\b/.test(within(link.pathname)))
    return;
  event.preventDefault();
  go(link.pathname + link.search);
});
