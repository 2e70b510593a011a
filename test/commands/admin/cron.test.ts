import { expect } from 'chai';
import { cronDecider, decideAskedRun, decideDueRun, dueOf } from '../../../commands/admin/cron.ts';
import { staggerOf } from '../../../shared/cron.ts';
import { cronJobAdded, cronJobToggled, cronRunEnded, cronRunStarted } from '../../../shared/events/admin/cron.ts';
import { type Draft, refusalOf, stateAfter, timeOf } from '../../support/kit.ts';

const added = cronJobAdded.draft({ name: 'a', schedule: '* * * * *', command: 'purge_logs', enabled: true });
const state = (...drafts: Draft[]) => stateAfter(cronDecider, added, ...drafts);
const now = timeOf(1) + 600_000;
const dueAt = Math.floor(now / 60_000) * 60;
const started = cronRunStarted.draft({ name: 'a', run: 1, dueAt });
const ended = cronRunEnded.draft({ name: 'a', run: 1, ok: true, message: '', durationMs: 1 });

describe('commands: scheduled jobs', () => {
  it('a due minute is claimed once', () => {
    expect(decideDueRun(state(), 'a', dueAt, now)).to.deep.equal([started]);
    expect(decideDueRun(state(started, ended), 'a', dueAt, now)).to.deep.equal([]);
    expect(decideDueRun(state(started, ended), 'a', dueAt + 60, now)).to.have.length(1);
  });

  it('nothing is due before the job was made, or while it is off, or still running', () => {
    const [job] = state().jobs;
    if (!job) throw new Error('there is no job');
    expect(dueOf(job, 'UTC', timeOf(1))).to.equal(undefined);
    expect(dueOf(job, 'UTC', now)).to.equal(dueAt);
    const off = state(cronJobToggled.draft({ name: 'a', enabled: false }));
    expect(decideDueRun(off, 'a', dueAt, now)).to.deep.equal([]);
    const running = state(started);
    expect(decideDueRun(running, 'a', dueAt + 60, timeOf(3))).to.deep.equal([]);
    expect(refusalOf(() => decideAskedRun(running, 'a', timeOf(3))).status).to.equal(409);
  });

  it('a time zone of its own moves the hours of a job, and a stagger the second at which it begins', () => {
    const at = Date.UTC(2026, 6, 1, 2) / 1_000;
    const daily = cronJobAdded.draft({ ...added.data, name: 'b', schedule: '0 4 * * *', timeZone: 'Europe/Berlin' });
    const [, berlin] = state(daily).jobs;
    if (!berlin) throw new Error('there is no job');
    const job = { ...berlin, since: at - 86_400 };
    expect(dueOf(job, 'UTC', at * 1_000)).to.equal(at);
    expect(dueOf({ ...job, timeZone: undefined }, 'UTC', at * 1_000)).to.equal(undefined);
    const late = staggerOf('b', 600);
    expect(late).to.be.within(60, 600);
    const spread = { ...job, staggerSeconds: 600 };
    expect(dueOf(spread, 'UTC', (at + late - 1) * 1_000)).to.equal(undefined);
    expect(dueOf(spread, 'UTC', (at + late) * 1_000)).to.equal(at);
  });

  it('a run that died with its process is ended by the next', () => {
    const later = timeOf(2) + 11 * 60_000;
    const [lost, next] = decideAskedRun(state(started), 'a', later);
    expect(lost?.data).to.include({ run: 1, ok: false });
    expect(next?.data).to.include({ run: 2, dueAt: null });
  });
});
