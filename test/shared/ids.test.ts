import { expect } from 'chai';
import { newId } from '../../shared/ids.ts';

describe('new ids', () => {
  it('are UUIDs of version 7, in the order of time, and differ within a millisecond', () => {
    const at = Date.UTC(2026, 1, 3);
    expect(newId(at)).to.match(/^019c20cc-8400-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(newId(at) < newId(at + 1)).to.equal(true);
    expect(new Set(Array.from({ length: 1_000 }, () => newId(at))).size).to.equal(1_000);
  });
});
