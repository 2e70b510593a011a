/** The position at which a request reads, and the one that its response shows. */
import { expect } from 'chai';
import type { Request, Response } from 'express';
import { passPosition, readAtOf, showPosition } from '../../api/http/consistency.ts';
import { failureOf } from '../support/kit.ts';

describe('the position of a read', () => {
  const at = (headers: Record<string, string>) =>
    readAtOf({ req: { headers } as unknown as Request, startedAt: 77 }, { has: async (position) => position <= 5 });

  it('is the head of the log at its arrival, unless the caller asks for less', async () => {
    expect(await at({})).to.deep.equal({ since: 77 });
    expect(await at({ 'x-signalbox-consistency': 'eventual' })).to.deep.equal({});
    expect(await at({ 'x-signalbox-min-position': '5' })).to.deep.equal({ position: 5 });
    const both = { 'x-signalbox-consistency': 'eventual', 'x-signalbox-min-position': '0' };
    expect(await at(both)).to.deep.equal({ position: 0 });
  });

  it('must be one that the log has', async () => {
    for (const [headers, reason] of [
      [{ 'x-signalbox-consistency': 'strong' }, /^X-Signalbox-Consistency must be "eventual", or left out/],
      [{ 'x-signalbox-min-position': '6' }, /^There is no position 6 in the log yet/],
      [{ 'x-signalbox-min-position': '' }, /^X-Signalbox-Min-Position must be a position/],
      [{ 'x-signalbox-min-position': '-1' }, /^X-Signalbox-Min-Position must be a position/],
      [{ 'x-signalbox-min-position': '1.5' }, /^X-Signalbox-Min-Position must be a position/],
      [{ 'x-signalbox-min-position': '9007199254740992' }, /^X-Signalbox-Min-Position must be a position/],
    ] as const)
      expect(await failureOf(at(headers)), JSON.stringify(headers)).to.match(reason);
  });

  it('is shown in one header: the exact position, or a minimum', () => {
    const headers = new Map<string, unknown>();
    const res = {
      headersSent: false,
      setHeader: (name: string, value: unknown) => headers.set(name, value),
      removeHeader: (name: string) => headers.delete(name),
    };
    const context = { res: res as unknown as Response };
    const shown = () => Object.fromEntries(headers);
    showPosition(context, undefined);
    expect(shown()).to.deep.equal({});
    showPosition(context, 4);
    expect(shown()).to.deep.equal({ 'X-Signalbox-Position': 4 });
    showPosition(context, 5, false);
    expect(shown()).to.deep.equal({ 'X-Signalbox-Position-At-Least': 5 });
    showPosition(context, 6);
    expect(shown()).to.deep.equal({ 'X-Signalbox-Position': 6 });
    res.headersSent = true;
    showPosition(context, 7);
    expect(shown(), 'after the headers were sent').to.deep.equal({ 'X-Signalbox-Position': 6 });
    headers.clear();
    passPosition(context, { 'x-signalbox-position': 8, 'x-signalbox-position-at-least': undefined, etag: 'x' });
    expect(shown(), 'of a call within it').to.deep.equal({ 'X-Signalbox-Position': '8' });
  });
});
