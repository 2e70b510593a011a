/** Times are of UTC everywhere: the time zone of the machine is asked for only where a setting names one. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { sources } from '../map/map.ts';

/** Methods and constructors of Date that use the time zone of the machine. */
const LOCAL =
  /\.(get|set)(Date|Day|Hours|Minutes|Seconds|Milliseconds|Month|FullYear|TimezoneOffset)\(|\.toLocale\w*String\(|\.to(Date|Time)String\(|new Date\([^()]*,/;

describe('time', () => {
  it('is read in UTC in all source folders', () => {
    const rooms = /^(shared|commands|projections|queries|api|infra)\//;
    const local = sources().filter((file) => rooms.test(file) && LOCAL.test(readFileSync(file, 'utf8')));
    expect(local, 'use getUTCDate and the like, or shared/time-buckets').to.deep.equal([]);
  });

  it('in the local zone is detected by this rule', () => {
    for (const text of ['one.getDate()', 'new Date(2026, 1)', 'at.toLocaleString()', 'at.setHours(0)'])
      expect(LOCAL.test(text), text).to.equal(true);
    for (const text of ['one.getUTCDate()', 'new Date(at)', 'at.toISOString()', 'Date.UTC(2026, 1)'])
      expect(LOCAL.test(text), text).to.equal(false);
  });
});
