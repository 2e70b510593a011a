/** What the tests of a suite share: opened before them, closed after them, the last opened first. */

type Close = () => unknown;

/** What a suite has open, by suite, in the order in which it was opened. */
const openIn = new WeakMap<object, Close[]>();

const closeOf = (value: object): Close => {
  const { close, stop, remove, end, drop } = value as Partial<
    Record<'close' | 'stop' | 'remove' | 'end' | 'drop', Close>
  >;
  return () => (close ?? stop ?? remove ?? end ?? drop)?.call(value);
};

/** For `await using`: a value whose `close`, `stop`, `remove`, `end` or `drop` is called at the end of the block. */
export const closing = <T extends object>(value: T): T & AsyncDisposable =>
  Object.assign(value, {
    async [Symbol.asyncDispose]() {
      await closeOf(value)();
    },
  });

function fixtureWith<T extends object>(
  begin: Mocha.HookFunction,
  end: Mocha.HookFunction,
  open: (this: Mocha.Context) => T | Promise<T>,
): T {
  let value: T | undefined;
  begin(async function () {
    value = await open.call(this);
    const suite = this.test?.parent as object;
    openIn.set(suite, [...(openIn.get(suite) ?? []), closeOf(value)]);
  });
  end(async function () {
    value = undefined;
    await openIn.get(this.test?.parent as object)?.pop()?.();
  });
  const here = (): T => {
    if (value === undefined) throw new Error('a fixture is open only while tests and hooks of its suite run');
    return value;
  };
  return new Proxy({} as T, {
    get(_, key) {
      // `await` looks for it, and a suite that takes its functions before it is open gets late ones.
      if (value === undefined && typeof key === 'string' && key !== 'then')
        return (...args: unknown[]) => (Reflect.get(here(), key) as (...given: unknown[]) => unknown)(...args);
      const found = value && Reflect.get(value, key);
      return typeof found === 'function' ? found.bind(value) : found;
    },
    set: (_, key, to) => Reflect.set(here(), key, to),
    has: (_, key) => Reflect.has(here(), key),
    ownKeys: () => Reflect.ownKeys(here()),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(here(), key),
  });
}

/**
 * What `open` gives, from before the tests of the enclosing `describe` until after them; then its `close`, `stop` or
 * `remove` is called, before the suite's own `after` hooks. Functions can be taken from it at once
 * (`const { ask } = fixture(startAgentsWorld)`); everything else is there when hooks and tests run. `this` of `open` is
 * the context of the hook, which can skip the suite.
 */
export const fixture = <T extends object>(open: (this: Mocha.Context) => T | Promise<T>): T =>
  fixtureWith(before, after, open);

/** The same, opened before and closed after each test. */
export const fixtureForEach = <T extends object>(open: (this: Mocha.Context) => T | Promise<T>): T =>
  fixtureWith(beforeEach, afterEach, open);
