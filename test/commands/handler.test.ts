/** The command path on a log in memory: what is given back, what is waited for, what refusals say. */
import { expect } from 'chai';
import { defineDecider, on } from '../../commands/decider.ts';
import { acknowledgedOf, type Intent } from '../../commands/handler.ts';
import { AppError, ConflictError, EventTooLargeError, LogUnavailableError } from '../../shared/errors.ts';
import { nameClaimed, nameReleased } from '../../shared/events/claims.ts';
import { memoryWorld } from '../support/memory-world.ts';
import { testOrigin } from '../support/world.ts';

const STREAM = 'name-1-ada';
const claimed = (owner: string) => nameClaimed.draft({ kind: 'name', name: 'ada', owner });
const released = (owner: string) => nameReleased.draft({ kind: 'name', name: 'ada', owner });
const context = () => ({ origin: testOrigin });

/** Owners, in the order in which they came. */
const owners = defineDecider<readonly string[]>({
  kind: 'list of owners',
  initial: [],
  folds: [on(nameClaimed, (state, { data }) => [...state, data.owner])],
});

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('command handler: on a log in memory', () => {
  it('returns the logged events, and records the position in the request', async () => {
    const world = memoryWorld();
    const commands = world.process();
    const origin = { ...testOrigin };
    await commands.execute(owners, STREAM, context(), () => [claimed('a')]);
    const { events, position } = await commands.execute(owners, STREAM, { origin }, () => [
      claimed('b'),
      released('b'),
    ]);
    expect(position).to.equal(3);
    expect(events.map(({ type, stream, revision, data }) => ({ type, stream, revision, data }))).to.deep.equal([
      { ...claimed('b'), stream: STREAM, revision: 1 },
      { ...released('b'), stream: STREAM, revision: 2 },
    ]);
    expect(events.map(({ meta }) => meta.ip)).to.deep.equal([testOrigin.ip, testOrigin.ip]);
    expect(acknowledgedOf(origin)).to.equal(3);
  });

  it('returns the position of the stream’s last change if there is nothing to change', async () => {
    const world = memoryWorld();
    await world.process().execute(owners, STREAM, context(), () => [claimed('a'), released('a')]);
    const origin = { ...testOrigin };
    const done = await world.process().execute(owners, STREAM, { origin }, () => []);
    expect(done).to.deep.equal({ stream: STREAM, events: [], position: 2 });
    expect(acknowledgedOf(origin)).to.equal(2);
  });

  it('appends events without a decision after any existing ones, and later decisions see them', async () => {
    const world = memoryWorld();
    const commands = world.process();
    await commands.execute(owners, STREAM, context(), () => [claimed('a')]);
    const recorded: Intent[] = [];
    const intents = {
      recorded: [],
      async record(step: number, intent: Intent) {
        recorded[step] = intent;
      },
    };
    const { events, position } = await commands.record(STREAM, { origin: testOrigin, intents }, [
      claimed('b'),
      claimed('c'),
    ]);
    expect(events.map(({ revision }) => revision)).to.deep.equal([1, 2]);
    expect(position).to.equal(3);
    expect(recorded).to.have.length(1);
    expect(recorded[0]).to.deep.include({ stream: STREAM, expected: 'any' });
    const seen: (readonly string[])[] = [];
    await commands.execute(owners, STREAM, context(), (state) => {
      seen.push(state);
      return [claimed('d')];
    });
    expect(seen.at(-1)).to.deep.equal(['a', 'b', 'c']);
    // The same request again appends the same events, which are there.
    const again = { origin: testOrigin, intents: { ...intents, recorded } };
    const repeated = await commands.record(STREAM, again, [claimed('x')]);
    expect(repeated.events.map(({ data }) => data.owner)).to.deep.equal(['b', 'c']);
    expect(world.written()).to.have.length(4);
  });

  it('gives up on a stream that others keep changing, with a retryable error', async () => {
    const world = memoryWorld();
    let appends = 0;
    world.beforeAppend = async (stream) => {
      appends++;
      throw new ConflictError(stream, 'none', 0);
    };
    const refused = await failure(world.process().execute(owners, STREAM, context(), () => [claimed('a')]));
    expect(refused).to.be.instanceOf(AppError).and.include({ status: 409 });
    expect((refused as AppError).extras.code).to.equal('BUSY');
    expect((refused as AppError).message).to.match(/list of owners.*try again/);
    expect(appends).to.equal(12);
  });

  it('maps failures of the log to errors for the caller', async () => {
    const world = memoryWorld();
    const failing = (error: Error) => {
      world.beforeAppend = () => Promise.reject(error);
      return failure(world.process().execute(owners, STREAM, context(), () => [claimed('a')]));
    };
    const away = await failing(new LogUnavailableError('no answer'));
    expect(away).to.be.instanceOf(AppError).and.include({ status: 503 });
    expect((away as AppError).extras.code).to.equal('LOG_UNAVAILABLE');
    expect((away as AppError).message).to.match(/Idempotency-Key/);
    const large = await failing(new EventTooLargeError('2000000 bytes', 2_000_000));
    expect(large).to.be.instanceOf(AppError).and.include({ status: 413 });
    expect((large as AppError).message).to.match(/2000000 bytes/);
    const other = new Error('something else');
    expect(await failing(other)).to.equal(other);
  });

  it('a failing decision appends nothing and does not stop the next one', async () => {
    const world = memoryWorld();
    const commands = world.process();
    const refuse = () => {
      throw new AppError(400, 'no');
    };
    expect(await failure(commands.execute(owners, STREAM, context(), refuse))).to.include({ status: 400 });
    expect(world.written()).to.have.length(0);
    await commands.execute(owners, STREAM, context(), () => [claimed('a')]);
    expect(world.written()).to.have.length(1);
  });
});
