/** Numbers from outside the log: shared statements, blocks, gaps. */
import { expect } from 'chai';
import { type CounterOptions, createCounters } from '../../../infra/stores/counters.ts';
import { until } from '../../support/until.ts';

interface Statement {
  readonly names: readonly string[];
  readonly amounts: readonly number[];
  answer(): void;
  fail(error: Error): void;
}

/** The counters on a table that responds on demand. */
function open(options?: CounterOptions, values = new Map<string, number>()) {
  const statements: Statement[] = [];
  const texts: string[] = [];
  const query = (given: { text: string; values: [string[], number[]] }) =>
    new Promise((resolve, reject) => {
      texts.push(given.text);
      const [names, amounts] = given.values;
      const answer = () => {
        const rows = names.map((name, at) => {
          values.set(name, (values.get(name) ?? 0) + (amounts[at] ?? 0));
          return { name, value: values.get(name) };
        });
        resolve({ rows });
      };
      statements.push({ names, amounts, answer, fail: reject });
    });
  const counters = createCounters({ query } as never, options);
  const asked = async (count: number) => {
    await until('a statement', () => statements.length >= count);
    return statements[count - 1] as Statement;
  };
  return { counters, statements, texts, asked };
}

describe('counters', () => {
  it('of all kinds share a statement, and requests made meanwhile share the next one', async () => {
    const { counters, statements, asked } = open();
    const first = Promise.all([
      counters.take('task'),
      counters.take('ticket-1-1', 2),
      counters.take('task'),
      counters.take('ticket-1-1'),
    ]);
    const one = await asked(1);
    expect([one.names, one.amounts]).to.deep.equal([
      ['task', 'ticket-1-1'],
      [2, 3],
    ]);
    const second = [counters.take('ticket-1-1'), counters.take('user')];
    one.answer();
    expect(await first).to.deep.equal([1, 1, 2, 3]);
    (await asked(2)).answer();
    expect(await Promise.all(second)).to.deep.equal([4, 1]);
    expect(statements).to.have.length(2);
  });

  it('of a frequently requested kind are reserved ahead, in order and without gaps', async () => {
    let now = 1_000;
    const { counters, statements, asked } = open({ now: () => now });
    const numbers: number[] = [];
    const take = async () => {
      const taken = counters.take('task');
      if (taken instanceof Promise) (await asked(statements.length + 1)).answer();
      numbers.push(await taken);
    };
    while (numbers.length < 400) await take();
    expect(numbers).to.deep.equal(Array.from({ length: 400 }, (_, n) => n + 1));
    expect(statements.length).to.be.lessThan(40);
    expect(Math.max(...statements.flatMap(({ amounts }) => amounts))).to.equal(65);
    // No values are reserved ahead for occasional requests.
    now += 60_000;
    for (let before = statements.length; statements.length === before; ) await take();
    now += 60_000;
    await take();
    expect(statements.slice(-2).map(({ amounts }) => amounts)).to.deep.equal([[1], [1]]);
  });

  it('that people see are never reserved ahead, and those of events always are', async () => {
    const { counters, asked } = open();
    for (let n = 1; n <= 3; n++) {
      const taken = counters.take('ticket-1-1');
      const { amounts, answer } = await asked(n);
      expect(amounts).to.deep.equal([1]);
      answer();
      expect(await taken).to.equal(n);
    }
    const taken = counters.take('event', 3);
    const { amounts, answer } = await asked(4);
    expect(amounts).to.deep.equal([515]);
    answer();
    expect(await taken).to.equal(1);
    expect([counters.take('event', 2), counters.take('event', 510)]).to.deep.equal([4, 6]);
    expect(counters.take('event')).to.be.instanceOf(Promise);
  });

  it('fail for all waiting callers if they cannot be taken, and can be requested again', async () => {
    const { counters, asked } = open();
    const waiting = [counters.take('task'), counters.take('user')] as Promise<number>[];
    (await asked(1)).fail(new Error('away'));
    const settled = await Promise.allSettled(waiting);
    expect(settled.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    const again = counters.take('task');
    (await asked(2)).answer();
    expect(await again).to.equal(1);
  });

  it('wait for the disk unless the database lives only as long as the process', async () => {
    for (const endsWithUs of [false, true]) {
      const { counters, texts, asked } = open({ endsWithUs });
      const taken = counters.take('task');
      (await asked(1)).answer();
      await taken;
      expect(texts[0]?.includes("set_config('synchronous_commit', 'off', true)")).to.equal(endsWithUs);
    }
  });
});
