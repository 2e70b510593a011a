/** Replays of deciders: what this program would decide now, from the log alone, on every kind of store. */
import { expect } from 'chai';
import { decideReset, decideSettings, settingsDecider } from '../../../commands/admin/settings.ts';
import {
  agentDecider,
  agentStream,
  decideDelete,
  decideUpdate,
  decideVisibility,
} from '../../../commands/agents/agents.ts';
import { decideHeartbeat, decideReport, decideWake } from '../../../commands/agents/heartbeat.ts';
import { decideSoul } from '../../../commands/agents/souls.ts';
import type { Decider } from '../../../commands/decider.ts';
import type { Replayable } from '../../../commands/replayable.ts';
import { replayables } from '../../../commands/replays.ts';
import { foldOne, snapshotKind } from '../../../commands/states.ts';
import {
  changeWorkflow,
  createWorkflow,
  decideDelete as decideDeleteWorkflow,
  workflowDecider,
  workflowStream,
} from '../../../commands/workflows.ts';
import { createLogger } from '../../../infra/logging.ts';
import { createSnapshots } from '../../../infra/stores/snapshots.ts';
import { type DecisionOptions, replayDecider } from '../../../infra/tools/replay-deciders.ts';
import { forbidden } from '../../../shared/errors.ts';
import { SETTINGS_STREAM } from '../../../shared/events/admin/settings.ts';
import { agentHidden } from '../../../shared/events/agents/agents.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import type { DomainEvent, EventDraft } from '../../../shared/events/define.ts';
import { agentRegisteredAs } from '../../support/rows.ts';
import { onEveryDatabase, type TestDatabase, testOrigin, viewOn } from '../../support/world.ts';

const log = createLogger('silent');
const NOTHING_FOUND = { refused: 0, otherwise: 0, notFolded: 0, savedStatesDiffering: 0, findings: [] };

const named = (name: string): Replayable => replayables.find((one) => one.name === name) as Replayable;

function suite(name: string, open: () => Promise<TestDatabase>): void {
  describe(`replay of deciders on ${name}`, function () {
    this.timeout(60_000);
    const { place, view } = viewOn(open, [...catalogue.values()], []);
    const stream = agentStream(1, 7);

    const replay = (replayed: Replayable, options: DecisionOptions = {}) =>
      replayDecider({ store: view.store, snapshots: createSnapshots(place.database.pool, log) }, replayed, options);
    const decide = <State>(
      decider: Decider<State>,
      one: string,
      how: (state: State) => readonly EventDraft[],
      origin = testOrigin,
    ) => view.commands.execute(decider, one, { origin }, how);
    const agent = (how: Parameters<typeof decide<typeof agentDecider.initial>>[2], origin = testOrigin) =>
      decide(agentDecider, stream, how, origin);
    const eventsOf = async (one: string): Promise<DomainEvent[]> => [...(await view.store.readStream(one))];

    before(async () => {
      const itself = { ...testOrigin, actor: { type: 'agent', id: 7, name: 'ada' } } as const;
      await agent(() => [agentRegisteredAs(7, 'ada')]);
      await agent((state) => decideUpdate(state, { status: 'busy', last_activity: 'at work' }, { via: 'id' }));
      const work = { connection_id: null, work_items_count: 2, work_item_types: ['tasks'] };
      const tokenUsage = {
        ...{ id: 'r-1', model: 'm', input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 },
        ...{ task_id: null, cost: 0.5, price: 'own' as const },
      };
      await agent((state) => decideHeartbeat(state, { ...work, tokenUsage }), itself);
      await agent((state) => decideHeartbeat(state, { ...work, tokenUsage: null }), itself);
      await agent((state) => decideReport(state, { tokenUsage }), itself);
      const config = { model: 'x' };
      await agent((state) => decideUpdate(state, { role: 'tester', status: 'error' }, { via: 'id', config }));
      await agent((state) => decideUpdate(state, { status: 'idle' }, { via: 'name', byItself: true }), itself);
      await agent((state) => decideUpdate(state, { status: 'idle' }, { via: 'name', byItself: true }), itself);
      await agent((state) => decideVisibility(state, true));
      await agent((state) => decideVisibility(state, false));
      await agent((state) => decideWake(state, 'a reason'));
      await agent((state) => decideSoul(state, 'You are ada.', null));
      await agent((state) => decideDelete(state, true));
      const fields = {
        name: 'w',
        description: null,
        model: 'm',
        task_prompt: 'Do it.',
        timeout_seconds: 60,
        agent_role: null,
        tags: [],
      };
      const { id } = await createWorkflow(view.commands, { origin: testOrigin }, fields);
      await changeWorkflow(view.commands, { origin: testOrigin }, id, { name: 'v', tags: ['a'] });
      await changeWorkflow(view.commands, { origin: testOrigin }, id, {});
      await decide(workflowDecider, workflowStream(1, id), (state) => decideDeleteWorkflow(state));
      await decide(settingsDecider, SETTINGS_STREAM, (state) => decideSettings(state, [{ name: 'a', value: '1' }]));
      await decide(settingsDecider, SETTINGS_STREAM, (state) => decideReset(state, 'a'));
    });

    it('repeats the same decisions, and lists those that it cannot repeat', async () => {
      const head = await view.store.log.head();
      expect(await replay(named('agent'))).to.deep.include({
        ...NOTHING_FOUND,
        streams: 1,
        events: (await eventsOf(stream)).length,
        same: 12,
        // The registration: who may register was decided before there was an agent.
        notDecidedAgain: 1,
      });
      expect(await replay(named('workflow'))).to.deep.include({
        ...NOTHING_FOUND,
        streams: 1,
        same: 3,
        notDecidedAgain: 1,
      });
      expect(await replay(named('setting'))).to.deep.include({ ...NOTHING_FOUND, streams: 1, events: 2, same: 2 });
      expect(await replay(named('project'))).to.deep.include({ ...NOTHING_FOUND, streams: 0, events: 0 });
      expect(await view.store.log.head()).to.equal(head);
    });

    it('detects what a changed decider would refuse or decide differently, from a position on', async () => {
      const whole = named('agent');
      const events = await eventsOf(stream);
      const stricter: Replayable = {
        ...whole,
        decide(state, append) {
          const would = whole.decide(state, append);
          if (append[0]?.type === agentHidden.type) throw forbidden('Nobody hides.');
          return would?.map((draft) =>
            draft.type === 'AgentWoken' ? { ...draft, data: { ...draft.data, reason: 'another' } } : draft,
          );
        },
      };
      const found = await replay(stricter);
      const at = (type: string) => events.find((event) => event.type === type) as DomainEvent;
      const [hidden, woken] = [at('AgentHidden'), at('AgentWoken')];
      expect(found).to.include({ same: 10, refused: 1, otherwise: 1 });
      expect(found.findings).to.deep.equal([
        {
          position: hidden.position,
          stream,
          event: `AgentHidden ${hidden.id}`,
          kind: 'refused',
          what: 'Nobody hides.',
        },
        {
          position: woken.position,
          stream,
          event: `AgentWoken ${woken.id}`,
          kind: 'otherwise',
          what: 'AgentWoken with another reason',
        },
      ]);
      expect((await replay(stricter, { examples: 1 })).findings).to.deep.equal(found.findings.slice(0, 1));
      expect(await replay(stricter, { from: woken.position })).to.include({ same: 2, refused: 0, otherwise: 1 });
      expect(await replay(stricter, { until: woken.position - 1 })).to.include({ refused: 1, otherwise: 0 });
    });

    it('detects events without a decision, and events that a fold does not accept', async () => {
      const other = agentStream(1, 8);
      const hide = agentHidden.draft({ agent_id: 8, name: 'bob' });
      for (const draft of [agentRegisteredAs(8, 'bob'), hide, hide])
        await view.commands.record(other, { origin: testOrigin }, [draft]);
      const second = (await eventsOf(other))[2] as DomainEvent;
      const found = await replay(named('agent'));
      expect(found).to.include({ streams: 2, same: 13, otherwise: 1 });
      expect(found.findings).to.deep.equal([
        {
          position: second.position,
          stream: other,
          event: `AgentHidden ${second.id}`,
          kind: 'otherwise',
          what: 'nothing instead of AgentHidden',
        },
      ]);
      const { decider } = named('agent');
      const narrow: Replayable = {
        ...named('agent'),
        decider: {
          ...decider,
          evolve(state, event) {
            if (event.type === 'AgentWoken') throw new Error('unheard of');
            return decider.evolve(state, event);
          },
        },
      };
      const unfolded = await replay(narrow);
      expect(unfolded).to.include({ notFolded: 1 });
      expect(unfolded.findings.find(({ kind }) => kind === 'not folded')).to.include({ stream, what: 'unheard of' });
    });

    it('compares stored states with the folded ones', async () => {
      const { pool } = place.database;
      const { decider } = named('agent');
      const events = await eventsOf(stream);
      const revision = 5;
      const state = events
        .slice(0, revision + 1)
        .reduce((before, event) => foldOne(decider, before, event), decider.initial as unknown);
      const save = (saved: unknown) =>
        pool.query(
          `INSERT INTO service.snapshots (stream, kind, revision, position, at, state) VALUES ($1, $2, $3, $4, 0, $5)
           ON CONFLICT (stream) DO UPDATE SET state = $5`,
          [stream, snapshotKind(decider), revision, events[revision]?.position, JSON.stringify(saved)],
        );
      await save(state);
      expect(await replay(named('agent'))).to.include({ savedStates: 1, savedStatesDiffering: 0 });
      await save({ ...(state as object), role: 'impostor' });
      const found = await replay(named('agent'), { examples: 1 });
      expect(found).to.include({ savedStates: 1, savedStatesDiffering: 1 });
      expect(found.findings[0]).to.deep.include({
        position: events[revision]?.position,
        kind: 'saved state',
        what: `version ${decider.snapshotVersion}: role`,
      });
    });
  });
}

onEveryDatabase('replay of deciders', suite);
