/** A value that components subscribe to. */
import { useLayoutEffect, useState } from 'preact/hooks';

export interface Store<T> {
  get(): T;
  set(value: T): void;
  watch(listener: () => void): () => void;
}

export function store<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    watch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<T>(watched: Store<T>): T {
  const [, render] = useState(0);
  const shown = watched.get();
  useLayoutEffect(() => {
    const changed = () => render((n) => n + 1);
    // The value may have changed since the first render.
    if (!Object.is(watched.get(), shown)) changed();
    return watched.watch(changed);
  }, [watched]);
  return shown;
}
