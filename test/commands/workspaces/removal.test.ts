/** Deleting workspaces: the decisions, and what moves where names are taken or a step is repeated. */
import { expect } from 'chai';
import { agentDecider, agentStream } from '../../../commands/agents/agents.ts';
import { livenessStream } from '../../../commands/agents/leases.ts';
import { moveAgent } from '../../../commands/agents/moves.ts';
import { moveProject } from '../../../commands/projects/moves.ts';
import { projectDecider, projectStream } from '../../../commands/projects/projects.ts';
import { tenantDecider } from '../../../commands/super/tenants.ts';
import { decideBeginRemoval, decideEndRemoval } from '../../../commands/workspaces/removal.ts';
import { workspaceOf } from '../../../commands/workspaces/workspaces.ts';
import type { MovingAgent, MovingProject } from '../../../queries/workspaces/removal.ts';
import { conflict } from '../../../shared/errors.ts';
import {
  workspaceCreated,
  workspaceDeleted,
  workspaceRemovalBegun,
} from '../../../shared/events/workspaces/workspaces.ts';
import { errorOf } from '../../infra/event-log/conformance/subject.ts';
import { givenFor, registeredAgent } from '../../support/kit.ts';
import { leasesMemory } from '../../support/leases-memory.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { tenantMade } from '../../support/tenants.ts';
import { testOrigin } from '../../support/world.ts';

const about = { tenant_id: 4, workspace_id: 10, name: 'Lab', slug: 'lab' };
const created = workspaceCreated.draft({ ...about, brand: null, isolation: 'shared', main: false });
const begun = workspaceRemovalBegun.draft({ ...about, moves_to: 9, agents: 3 });
const deleted = workspaceDeleted.draft({ ...about, moves_to: 9, agents: 3 });
const given = givenFor(tenantDecider, ...tenantMade, created);

describe('deleting workspaces', () => {
  it('starts and ends once, and the workspace is not found in between', () => {
    given().when(decideBeginRemoval, 10, 3).then(begun);
    given(begun).when(decideBeginRemoval, 10, 0).then();
    given(begun).when(workspaceOf, 10).thenRefuses(404);
    given().when(decideEndRemoval, 10).then();
    given(begun).when(decideEndRemoval, 10).then(deleted);
    given(begun, deleted).when(decideEndRemoval, 10).then();
    given(begun, deleted).when(decideBeginRemoval, 10, 0).thenRefuses(404);
  });

  it('is rejected for the main workspace of a tenant', () => {
    given().when(decideBeginRemoval, 9, 0).thenRefuses(400);
  });

  const FROM = 10;
  const TO = 9;
  const from = { origin: { ...testOrigin, workspace: FROM } };

  describe('agents', () => {
    const scout: MovingAgent = {
      id: 7,
      name: 'scout',
      role: 'tester',
      session_key: 'key-7',
      hidden: true,
      runtime_type: null,
      source: 'manual',
      config: { colour: 'red' },
      soul: 'calm',
      memory: 'remembered',
      memoryFields: { more: 1 },
    };
    const start = async () => {
      const world = memoryWorld();
      const commands = world.process();
      await commands.record(agentStream(FROM, 7), from, [registeredAgent({ agent_id: 7, name: 'scout' })]);
      const there = async (id: number) => (await commands.load(agentDecider, agentStream(TO, id))).state;
      return { world, commands, there };
    };

    it('leave their heartbeats in the log of the deleted workspace, before their deletion', async () => {
      const { world, commands } = await start();
      const leases = leasesMemory();
      await leases.renew({ tenant: 1, workspace: FROM, agent: 7, at: 100, connection: null });
      await moveAgent({ commands, leases }, from, TO, scout);
      const types = world.written().map(({ stream, type }) => `${stream} ${type}`);
      const [summed, deletion] = [
        types.indexOf(`${livenessStream(FROM)} HeartbeatsReceived`),
        types.indexOf(`${agentStream(FROM, 7)} AgentDeleted`),
      ];
      expect(summed, types.join()).to.be.within(0, deletion);
      expect(await leases.closed('all')).to.deep.equal([]);
    });

    it('keep id, texts and session key, and the old record is deleted', async () => {
      const { commands, there } = await start();
      await moveAgent({ commands, leases: leasesMemory() }, from, TO, scout);
      expect(await there(7)).to.deep.include({
        registered: true,
        name: 'scout',
        session_key: 'key-7',
        hidden: true,
        soulLength: 4,
        memoryLength: 10,
        status: 'offline',
      });
      expect((await commands.load(agentDecider, agentStream(FROM, 7))).state).to.include({ deleted: true });
    });

    it('can be moved again after any step', async () => {
      const { world, commands, there } = await start();
      await moveAgent({ commands, leases: leasesMemory() }, from, TO, scout);
      const written = world.written().length;
      await moveAgent({ commands, leases: leasesMemory() }, from, TO, scout);
      expect(world.written().slice(written)).to.deep.equal([]);
      for (let kept = 1; kept < written; kept++) {
        const { world: cut } = await start();
        await moveAgent({ commands: cut.process(), leases: leasesMemory() }, from, TO, scout);
        cut.forgetAfter(kept);
        const next = cut.process();
        await moveAgent({ commands: next, leases: leasesMemory() }, from, TO, scout);
        const { state } = await next.load(agentDecider, agentStream(TO, 7));
        expect(state, `after ${kept} of ${written}`).to.include({ registered: true, session_key: 'key-7' });
      }
      expect(await there(7)).to.include({ name: 'scout' });
    });

    it('get a numbered name if theirs is taken, or one with their id if it is not allowed', async () => {
      const { commands, there } = await start();
      await moveAgent({ commands, leases: leasesMemory() }, from, TO, { ...scout, id: 70, session_key: null });
      await moveAgent({ commands, leases: leasesMemory() }, from, TO, { ...scout, id: 71, session_key: null });
      expect((await there(71)).name).to.equal('scout-2');
      await moveAgent({ commands, leases: leasesMemory() }, from, TO, {
        ...scout,
        id: 72,
        name: 'bad\u200bname',
        session_key: null,
      });
      expect((await there(72)).name).to.equal('agent-72');
    });
  });

  describe('projects', () => {
    const site: MovingProject = {
      id: 5,
      name: 'Site',
      slug: 'site',
      description: null,
      ticket_prefix: 'SITE',
      github_repo: null,
      deadline: null,
      color: null,
      archived: false,
    };
    it('keep id and names or get numbered names, and archived projects stay archived', async () => {
      const commands = memoryWorld().process();
      const there = async (id: number) => (await commands.load(projectDecider, projectStream(TO, id))).state;
      await moveProject(commands, from, TO, site);
      await moveProject(commands, from, TO, site);
      await moveProject(commands, from, TO, { ...site, id: 6, archived: true });
      expect(await there(5)).to.deep.include({ id: 5, slug: 'site', prefix: 'SITE', life: 'active' });
      expect(await there(6)).to.deep.include({ id: 6, slug: 'site-2', prefix: 'SITE2', life: 'archived' });
    });

    it('fails with the last refusal if every name is taken, and at once if the log fails', async () => {
      const commands = memoryWorld().process();
      let tries = 0;
      const failing = (error: Error) => ({
        ...commands,
        async execute() {
          tries++;
          throw error;
        },
      });
      const taken = conflict('taken');
      expect(await errorOf(moveProject(failing(taken), from, TO, site))).to.equal(taken);
      expect(tries).to.be.above(2);
      tries = 0;
      const broken = new Error('the disk is full');
      expect(await errorOf(moveProject(failing(broken), from, TO, site))).to.equal(broken);
      expect(tries).to.equal(1);
    });
  });
});
