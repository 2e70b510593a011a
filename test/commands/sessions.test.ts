/** Sessions of tools: a session keeps its id until it is deleted, and only one that is registered can be controlled. */
import { expect } from 'chai';
import { controlSession, decideControl, reportSession, sessionDecider } from '../../commands/sessions.ts';
import { agentsMemory } from '../support/agents-memory.ts';
import { outcomeOf, refusalOf } from '../support/kit.ts';

/** There is no gateway to be called. */
const nobody = {
  call(): never {
    throw new Error('nobody is to be called');
  },
};

describe('a session', () => {
  const report = {
    session_id: 'a/b c',
    agent_name: 'ada',
    model: null,
    project_slug: null,
    project_path: null,
    git_branch: null,
    user_messages: null,
    assistant_messages: null,
    tool_uses: null,
    input_tokens: null,
    output_tokens: null,
    estimated_cost: null,
  };

  it('has one id for all of its reports, and a new one after its deletion', async () => {
    const { commands, context, world } = agentsMemory();
    const reported = async () => {
      await reportSession(commands, context(), report);
      return world.written().at(-1)?.data.id;
    };
    const first = await reported();
    expect(await reported()).to.equal(first);
    await controlSession(commands, context(), nobody, { session: report.session_id, action: 'delete', value: null });
    expect(await reported()).not.to.equal(first);
    expect(new Set(world.written().map(({ stream }) => stream))).to.deep.equal(new Set(['cli_session-1-a%2Fb%20c']));
  });

  it('can be controlled only if it is registered', async () => {
    const { commands, context, world } = agentsMemory();
    expect(refusalOf(() => decideControl(sessionDecider.initial, 's', 'pause', null)).status).to.equal(404);
    const asked = { session: 's', action: 'pause', value: null } as const;
    expect(await outcomeOf(controlSession(commands, context(), nobody, asked))).to.equal('404');
    expect(decideControl({ id: 3 }, 's', 'set-label', 'x')[0]?.data).to.deep.equal({
      id: 3,
      session_id: 's',
      action: 'set-label',
      value: 'x',
    });
    expect(world.written()).to.deep.equal([]);
  });
});
