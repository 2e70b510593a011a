import { expect } from 'chai';
import { spansOf } from '../../../queries/agents/statuses.ts';

describe('spans of statuses', () => {
  const at = (second: number, status: string, position: number) => ({ at: second, status, position });

  it('leave out a status of no length, but show the current one from the second of its change', () => {
    const changes = [at(10, 'offline', 1), at(20, 'idle', 2), at(20, 'busy', 3)];
    expect(spansOf(changes, 20)).to.deep.equal([
      { status: 'offline', since: 10, until: 20, position: 1 },
      { status: 'busy', since: 20, until: 20, position: 3 },
    ]);
    expect(spansOf([at(10, 'offline', 1)], 10)).to.deep.equal([
      { status: 'offline', since: 10, until: 10, position: 1 },
    ]);
  });

  it('join when the status between them had no length', () => {
    const changes = [at(10, 'idle', 1), at(20, 'busy', 2), at(20, 'idle', 3)];
    expect(spansOf(changes, 30)).to.deep.equal([{ status: 'idle', since: 10, until: 30, position: 1 }]);
  });
});
