/** Taking turns; outages, which are logged once in a while, and their end. */
import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import {
  askedSince,
  askingTogether,
  awaitingOthers,
  createBackOff,
  createNotice,
  createOutage,
  inPieces,
  nextTurn,
  pause,
  takingTurnsByKey,
} from '../../shared/waiting.ts';
import { until } from '../support/until.ts';

describe('a pause', () => {
  it('leaves no listener on its signal, whether it ends by time or by the signal', async () => {
    const stop = new AbortController();
    const listeners = () => getEventListeners(stop.signal, 'abort').length;
    for (let n = 0; n < 3; n++) await pause(1, stop.signal, { ref: true });
    expect(listeners(), 'after its time').to.equal(0);
    const paused = pause(60_000, stop.signal);
    expect(listeners()).to.equal(1);
    stop.abort();
    await paused;
    expect(listeners(), 'after the signal').to.equal(0);
  });
});

describe('an outage', () => {
  it('is logged at once, repeated after half a minute, and ends with one line', () => {
    const lines: string[] = [];
    let now = 1_000_000;
    const log = {
      warn: (about: { forMs: number }, text: string) => lines.push(`${text} ${about.forMs}`),
      info: (about: { afterMs: number }, text: string) => lines.push(`${text} ${about.afterMs}`),
    };
    const outage = createOutage(log as never, 'fails', 'works', () => now);
    outage.worked();
    for (let n = 0; n < 301; n++) {
      outage.failed(new Error('away'));
      now += 100;
    }
    outage.worked();
    outage.worked();
    outage.failed(new Error('away'));
    expect(lines).to.deep.equal(['fails 0', 'fails 30000', 'works 30100', 'fails 0']);
  });
});

describe('a back-off', () => {
  it('doubles from its first pause up to its last one, and begins again after a success', () => {
    const backOff = createBackOff({ firstMs: 100, lastMs: 500 });
    const next = (times: number) => Array.from({ length: times }, () => backOff.next());
    expect(next(5)).to.deep.equal([100, 200, 400, 500, 500]);
    backOff.reset();
    expect(next(2)).to.deep.equal([100, 200]);
  });

  it('spreads each pause over its upper half', () => {
    const { random } = Math;
    const pauseAt = (chance: number) => {
      Math.random = () => chance;
      return createBackOff({ firstMs: 100, lastMs: 500, spread: true }).next();
    };
    try {
      expect([0, 0.5, 1].map(pauseAt)).to.deep.equal([50, 75, 100]);
    } finally {
      Math.random = random;
    }
  });
});

describe('a notice', () => {
  const { signal } = new AbortController();

  it('ends the current wait, or the next one', async () => {
    const notice = createNotice();
    const waiting = notice.within(60_000, signal);
    notice.give();
    expect(await waiting).to.equal(true);
    notice.give();
    notice.give();
    expect(await notice.within(60_000, signal), 'given before').to.equal(true);
    expect(await notice.within(1, signal), 'each ends one wait').to.equal(false);
  });

  it('does not outlast the signal', async () => {
    expect(await createNotice().within(60_000, AbortSignal.abort())).to.equal(false);
  });
});

describe('keyed turns', () => {
  const away = new Error('away');
  const gate = () => {
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    return { open: () => open(), opened };
  };

  it('run one after another per key, even after a failure, without blocking other keys', async () => {
    const inTurn = takingTurnsByKey(() => false);
    const order: string[] = [];
    const { open, opened } = gate();
    const first = inTurn('a', async () => {
      await opened;
      order.push('first');
      throw new Error('refused');
    });
    const second = inTurn('a', async () => order.push('second'));
    await inTurn('b', async () => order.push('other'));
    expect(order).to.deep.equal(['other']);
    open();
    const [refused] = await Promise.allSettled([first, second]);
    expect(refused.status).to.equal('rejected');
    expect(order).to.deep.equal(['other', 'first', 'second']);
  });

  it('fail without running if they wait behind a failure that concerns all, and later turns run', async () => {
    const inTurn = takingTurnsByKey((error) => error === away);
    const { open, opened } = gate();
    let runs = 0;
    const waiting = Array.from({ length: 5 }, () =>
      inTurn('a', async () => {
        runs++;
        await opened;
        throw away;
      }),
    );
    open();
    for (const one of await Promise.allSettled(waiting))
      expect(one).to.deep.equal({ status: 'rejected', reason: away });
    expect(runs).to.equal(1);
    expect(await inTurn('a', async () => 'done')).to.equal('done');
  });
});

describe('callers who wait for each other', () => {
  /** Which of the waits are over in this turn of the event loop. */
  const overAtOnce = async (...waits: readonly Promise<void>[]): Promise<readonly boolean[]> => {
    const over = waits.map(() => false);
    const marked = Promise.all(
      waits.map(async (wait, n) => {
        await wait;
        over[n] = true;
      }),
    );
    await Promise.race([marked, nextTurn()]);
    return over;
  };

  it('wait until as many wait as came when that was measured', async () => {
    const gather = awaitingOthers(1_000, 10);
    await Promise.all([gather(), gather()]);
    for (let group = 0; group < 3; group++) {
      const first = gather();
      expect(await overAtOnce(first)).to.deep.equal([false]);
      expect(await overAtOnce(first, gather())).to.deep.equal([true, true]);
    }
  });

  it('expect the most that came when fewer than expected came several times in a row', async () => {
    const gather = awaitingOthers(30, 10);
    await Promise.all([gather(), gather(), gather()]);
    for (const size of [1, 2, 1, 1]) await Promise.all(Array.from({ length: size }, gather));
    expect(await overAtOnce(gather(), gather())).to.deep.equal([true, true]);
  });

  it('do not wait if no other came when that was measured', async () => {
    const gather = awaitingOthers(1, 10);
    await gather();
    for (let group = 1; group < 256; group++) expect(await overAtOnce(gather())).to.deep.equal([true]);
  });

  it('are counted again in every 256th group', async () => {
    const gather = awaitingOthers(1, 10);
    for (let group = 0; group < 256; group++) await gather();
    await Promise.all([gather(), gather()]);
    expect(await overAtOnce(gather(), gather())).to.deep.equal([true, true]);
  });

  it('wait for no more than the most', async () => {
    const gather = awaitingOthers(60_000, 2);
    for (let group = 0; group < 3; group++) expect(await overAtOnce(gather(), gather())).to.deep.equal([true, true]);
  });
});

describe('batched requests', () => {
  it('are sent once for all waiting callers, and never answered by an earlier one', async () => {
    const sent: { keys: readonly string[]; answer: (text: string) => void }[] = [];
    const ask = askingTogether((keys: readonly string[]) => {
      return new Promise<string>((answer) => {
        sent.push({ keys, answer });
      });
    });
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const first = [ask(['a']), ask(['b'])];
    await turn();
    expect(sent.map(({ keys }) => keys)).to.deep.equal([['a', 'b']]);
    const late = [ask(['a']), ask([])];
    await turn();
    expect(sent.length, 'while the first is on its way').to.equal(1);
    sent[0]?.answer('old');
    expect(await Promise.all(first)).to.deep.equal(['old', 'old']);
    await turn();
    expect(sent.slice(1).map(({ keys }) => keys)).to.deep.equal([['a']]);
    sent[1]?.answer('new');
    expect(await Promise.all(late)).to.deep.equal(['new', 'new']);
  });

  it('fail only for their own callers', async () => {
    let calls = 0;
    const ask = askingTogether(async () => {
      calls++;
      if (calls === 1) throw new Error('away');
      return calls;
    });
    const failing = [ask([1]), ask([2])].map((one) => one.catch((error: Error) => error.message));
    expect(await Promise.all(failing)).to.deep.equal(['away', 'away']);
    expect(await ask([3])).to.equal(2);
  });
});

describe('a shared request', () => {
  const open = (options?: { failsAll?: boolean }) => {
    const sent: { answer(value: string): void; fail(): void }[] = [];
    const ask = askedSince(
      () =>
        new Promise<string>((answer, reject) => {
          sent.push({ answer, fail: () => reject(new Error('away')) });
        }),
      options,
    );
    return { sent, ask };
  };
  /** A request is sent at the end of a turn. */
  const turn = async () => {
    await nextTurn();
    await nextTurn();
  };
  const outcomes = async (asked: readonly (Promise<string> | string)[]) =>
    Promise.all(asked.map((one) => Promise.resolve(one).catch((error: Error) => error.message)));

  it('is sent once for callers of the same turn, and again for callers who come while it is pending', async () => {
    const { sent, ask } = open();
    const early = performance.now();
    await until('the clock goes on', () => performance.now() > early);
    const first = [ask(), ask()];
    await turn();
    const late = [ask(), ask()];
    await turn();
    expect(sent).to.have.length(1);
    sent[0]?.answer('old');
    expect(await outcomes(first)).to.deep.equal(['old', 'old']);
    expect(ask(early), 'without a promise').to.equal('old');
    await turn();
    expect(sent).to.have.length(2);
    sent[1]?.answer('new');
    expect(await outcomes(late)).to.deep.equal(['new', 'new']);
    expect(ask(early)).to.equal('new');
  });

  it('is sent once for callers who come one after the other in a turn', async () => {
    const { sent, ask } = open();
    const first = ask();
    await Promise.resolve().then(() => Promise.resolve());
    const second = ask();
    await turn();
    expect(sent).to.have.length(1);
    sent[0]?.answer('there');
    expect(await outcomes([first, second])).to.deep.equal(['there', 'there']);
  });

  for (const failsAll of [false, true])
    it(`when it fails, ${failsAll ? 'fails those who wait behind it, too' : 'is asked again for the others'}`, async () => {
      const { sent, ask } = open({ failsAll });
      const first = outcomes([ask()]);
      await turn();
      const second = outcomes([ask(), ask()]);
      sent[0]?.fail();
      expect(await first).to.deep.equal(['away']);
      await turn();
      expect(sent).to.have.length(failsAll ? 1 : 2);
      sent[1]?.answer('there');
      expect(await second).to.deep.equal(failsAll ? ['away', 'away'] : ['there', 'there']);
      const third = outcomes([ask()]);
      await turn();
      sent.at(-1)?.answer('again');
      expect(await third).to.deep.equal(['again']);
    });
});

describe('work in pieces', () => {
  const busy = (ms: number) => {
    const until = performance.now() + ms;
    while (performance.now() < until);
  };
  it('gives the same as map', async () => {
    expect(await inPieces([1, 2, 3], (n) => n * 2)).to.deep.equal([2, 4, 6]);
  });
  it('runs one piece per turn of the event loop, however many callers have work', async () => {
    let pieces = 0;
    let most = 0;
    let running = true;
    // Counts the pieces between two turns.
    const turn = () => {
      most = Math.max(most, pieces);
      pieces = 0;
      if (running) setImmediate(turn);
    };
    const work = () =>
      inPieces([1, 2, 3, 4], () => {
        pieces++;
        busy(10);
      });
    // The first piece of each begins at once.
    const all = Array.from({ length: 6 }, work);
    pieces = 0;
    setImmediate(turn);
    await Promise.all(all);
    running = false;
    expect(most).to.be.at.most(2);
  });
});
