/** Records in responses of writes: worked out from what the read model has, and from the events of their stream since. */
import { expect } from 'chai';
import { agentDecider, agentStream, decideDelete, decideVisibility } from '../../commands/agents/agents.ts';
import { type Registration, registerAgent, selfRegistration } from '../../commands/agents/registration.ts';
import type { Executed } from '../../commands/handler.ts';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { recordAfter } from '../../queries/agents/agents.ts';
import { createRecords } from '../../queries/records.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { anyRoom } from '../support/kit.ts';
import { testDatabase, testOrigin, viewOn } from '../support/world.ts';

describe('records after a write', function () {
  this.timeout(30_000);
  const { view } = viewOn(testDatabase, [...catalogue.values()], [agentsProjection]);

  const context = () => ({ origin: testOrigin });
  const records = () => createRecords({ reads: view.reads, store: view.store });
  const make = async (name: string, more: Partial<Registration> = {}) =>
    registerAgent(
      view.commands,
      context(),
      { ...selfRegistration({ name, framework: null, capabilities: [] }), ...more },
      anyRoom,
    );
  const hide = (id: number, hidden: boolean) =>
    view.commands.execute(agentDecider, agentStream(1, id), context(), (state) => decideVisibility(state, hidden));
  const shown = async (from: ReturnType<typeof records>, id: number, executed: Executed) => {
    const { name, hidden } = await recordAfter(from, undefined, 1, id, executed);
    return [name, hidden];
  };

  it('show the decided state without a projector, from memory or from the stream', async () => {
    const [one, other] = [records(), records()];
    const { id, executed } = await make('ada');
    expect(await shown(one, id, executed)).to.deep.equal(['ada', 0]);
    const hidden = await hide(id, true);
    expect(await shown(one, id, hidden)).to.deep.equal(['ada', 1]);
    expect(await shown(other, id, hidden), 'another process').to.deep.equal(['ada', 1]);
    const unchanged = await hide(id, true);
    expect(unchanged.events).to.deep.equal([]);
    expect(await shown(one, id, unchanged)).to.deep.equal(['ada', 1]);
    expect(await shown(records(), id, unchanged)).to.deep.equal(['ada', 1]);
    // What another process has appended in between.
    await hide(id, false);
    const again = await hide(id, true);
    expect(await shown(one, id, again)).to.deep.equal(['ada', 1]);
  });

  it('match the command, even if the record is deleted right after it', async () => {
    const { id } = await make('bob');
    const hidden = await hide(id, true);
    const stream = agentStream(1, id);
    const deleted = await view.commands.execute(agentDecider, stream, context(), (state) => decideDelete(state, false));
    expect(await shown(records(), id, hidden)).to.deep.equal(['bob', 1]);
    const gone = await shown(records(), id, deleted).catch((error: { status: number }) => error.status);
    expect(gone).to.equal(404);
  });

  it('start from the rows of the read model, and read long streams page by page', async () => {
    const { id } = await make('eve');
    const projector = view.project('one');
    const first = await hide(id, true);
    await view.positions.reach(['AgentHidden'], { position: first.position });
    await projector.close();
    let last = first;
    for (let n = 0; n < 60; n++) last = await hide(id, n % 2 === 1);
    const streams: (number | undefined)[] = [];
    const log = {
      ...view.store.log,
      readStream: (...of: Parameters<typeof view.store.log.readStream>) => {
        streams.push(of[1]?.from);
        return view.store.log.readStream(...of);
      },
    };
    const watched = createRecords({ reads: view.reads, store: { ...view.store, log } as typeof view.store });
    expect(await shown(watched, id, last)).to.deep.equal(['eve', 1]);
    expect(streams, 'pages').to.have.length(2);
  });
});
