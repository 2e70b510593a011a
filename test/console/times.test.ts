/** The axes of the console over time: bars of whole windows, and ticks of the register. */
import { expect } from 'chai';
import { consoleCode } from './code.ts';

interface Bar {
  readonly key: string;
  readonly label: string;
  readonly value: number;
}
interface Hours {
  hourBars(values: readonly { at: number; value: number }[], start: number, end: number): readonly Bar[];
}
interface Tick {
  readonly at: number;
  readonly label: string;
}
interface Ticks {
  ticksOf(start: number, end: number, most: number): readonly Tick[];
}

const HOUR = 3_600_000;
const NOON = Date.UTC(2026, 10, 26, 12);

describe('the axes of the console', () => {
  let hours: Hours;
  let ticks: Ticks;
  before(async () => {
    hours = await consoleCode<Hours>('parts/hours.ts');
    ticks = await consoleCode<Ticks>('register/ticks.ts');
  });

  it('have a bar for every hour of the window, silent ones included, to its end', () => {
    const bars = hours.hourBars([{ at: NOON - 20 * HOUR, value: 3 }], NOON - 24 * HOUR, NOON);
    expect(bars).to.have.length(24);
    expect(bars.map(({ value }) => value)).to.deep.equal(Array.from({ length: 24 }, (_, n) => (n === 4 ? 3 : 0)));
  });

  it('begin with the window even if nothing happened in it', () => {
    const bars = hours.hourBars([], NOON - 24 * HOUR + 1, NOON + 1);
    expect(bars).to.have.length(25);
    expect(Number(bars[0]?.key) * HOUR).to.equal(NOON - 24 * HOUR);
    expect(Number(bars.at(-1)?.key) * HOUR).to.equal(NOON);
  });

  it('lose nothing in bars of several hours', () => {
    const values = Array.from({ length: 720 }, (_, n) => ({ at: NOON - n * HOUR - 1, value: 1 }));
    const bars = hours.hourBars(values, NOON - 720 * HOUR, NOON);
    expect(bars.length).to.be.at.most(72);
    expect(bars.reduce((sum, { value }) => sum + value, 0)).to.equal(720);
  });

  it('of the register have few ticks, evenly, with dates where a range has several days', () => {
    for (const length of [1, 24, 168, 720, 8_760, 40_000]) {
      const shown = ticks.ticksOf(NOON - length * HOUR, NOON, 8);
      expect(shown.length, `${length} h`).to.be.within(2, 8);
      for (const { at } of shown) expect(at).to.be.within(NOON - length * HOUR, NOON);
      if (length > 24) expect(new Set(shown.map(({ label }) => label)).size, `${length} h`).to.equal(shown.length);
    }
    expect(ticks.ticksOf(NOON - 168 * HOUR, NOON, 8).map(({ label }) => label)).to.include('26 Nov');
  });
});
