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
interface Typing {
  momentTyped(text: string, now: number): { readonly at?: string; readonly fault?: string };
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

  it('take a typed moment as a time, a date or a position', async () => {
    const { momentTyped } = await consoleCode<Typing>('register/typed.ts');
    const now = new Date(2026, 10, 26, 12, 30).getTime();
    const local = (day: number, hour = 0, minute = 0, second = 0) =>
      new Date(2026, 10, day, hour, minute, second).toISOString().replace('.000', '');
    expect(momentTyped(' 81204 ', now)).to.deep.equal({ at: '81204' });
    expect(momentTyped('9:05', now)).to.deep.equal({ at: local(26, 9, 5) });
    expect(momentTyped('14:02:11', now), 'of yesterday').to.deep.equal({ at: local(25, 14, 2, 11) });
    expect(momentTyped('2026-11-25', now)).to.deep.equal({ at: local(25) });
    expect(momentTyped('2026-11-25 14:30', now)).to.deep.equal({ at: local(25, 14, 30) });
    expect(momentTyped('2026-11-25T14:30:00Z', now)).to.deep.equal({ at: '2026-11-25T14:30:00Z' });
    for (const text of ['', 'yesterday', '25:00', '2026-13-40', '2026-11-25 99:00'])
      expect(momentTyped(text, now).fault, text).to.match(/^Type/);
    expect(momentTyped('2027-01-01', now).fault).to.equal('This moment is yet to come.');
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
