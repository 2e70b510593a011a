/** How far read models may be behind while the service reports that it is ready. */
import { expect } from 'chai';
import type { Core } from '../../infra/core.ts';
import { createReadiness, Lag } from '../../infra/readiness.ts';

describe('read model lag', () => {
  it('is zero at the end of the log', () => {
    const lag = new Lag();
    expect(lag.behindMs('agents', 40, 40, 1_000)).to.equal(0);
    expect(lag.behindMs('agents', 40, 40, 90_000)).to.equal(0);
  });

  it('counts from when the first end not yet reached was seen', () => {
    const lag = new Lag();
    expect(lag.behindMs('agents', 40, 50, 1_000)).to.equal(0);
    expect(lag.behindMs('agents', 45, 60, 4_000)).to.equal(3_000);
    expect(lag.behindMs('agents', 49, 90, 9_000)).to.equal(8_000);
  });

  it('restarts when that end is reached, however far the log has advanced', () => {
    const lag = new Lag();
    lag.behindMs('agents', 40, 50, 1_000);
    expect(lag.behindMs('agents', 50, 1_000_000, 9_000)).to.equal(0);
    expect(lag.behindMs('agents', 60, 2_000_000, 10_000)).to.equal(1_000);
    expect(lag.behindMs('agents', 2_000_000, 2_000_000, 11_000)).to.equal(0);
    expect(lag.behindMs('agents', 2_000_000, 2_000_001, 99_000)).to.equal(0);
  });

  it('is separate for each read model', () => {
    const lag = new Lag();
    lag.behindMs('agents', 40, 50, 1_000);
    expect(lag.behindMs('audit', 50, 50, 9_000)).to.equal(0);
    expect(lag.behindMs('agents', 41, 50, 9_000)).to.equal(8_000);
  });
});

describe('readiness', () => {
  it('looks at the log and at writes at the same time, for three seconds, while neither responds', async () => {
    const silent = () => new Promise<never>(() => undefined);
    const core = { eventLog: { head: silent }, positions: { shown: () => 0 } } as unknown as Core;
    const ready = createReadiness(core, { projector: undefined, registered: { checkWritable: silent }, start: 0 });
    const begun = performance.now();
    const { ok, checks, details } = await ready();
    expect(performance.now() - begun).to.be.below(5_000);
    expect({ ok, checks }).to.deep.equal({ ok: false, checks: { stores: 'failing', writes: 'failing' } });
    expect(details).to.deep.equal({
      stores: 'the event log did not respond within 3000 ms',
      writes: 'a write did not respond within 3000 ms',
    });
  });
});
