/**
 * A request that is repeated after a crash, with what it had recorded: secrets were not shown, so the second run
 * has to give ones that work, and nothing may be there twice.
 */
import { expect } from 'chai';
import { agentStream } from '../../commands/agents/agents.ts';
import { issueAgentKey } from '../../commands/agents/keys.ts';
import { claimsFor, sessionKeyKind } from '../../commands/agents/names.ts';
import { operatorsRegistration, registerAgent } from '../../commands/agents/registration.ts';
import { rotateGlobalKey } from '../../commands/auth/global-key.ts';
import { createUser } from '../../commands/auth/registration.ts';
import { claimantOf } from '../../commands/claims.ts';
import { type CommandContext, type Commands, createCommands, type Intent } from '../../commands/handler.ts';
import { reportTokens } from '../../commands/tokens/reports.ts';
import { createCredentials } from '../../infra/credentials/credentials.ts';
import { createLogger } from '../../infra/logging.ts';
import { agentKeysProjection } from '../../projections/agents/keys.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import { listAgentKeys } from '../../queries/agents/keys.ts';
import { findGlobalKey } from '../../queries/auth/global-key.ts';
import { findUserByName, listUsers } from '../../queries/auth/users.ts';
import type { TokenDirectory } from '../../queries/tokens/reports.ts';
import { conflict, RUN_IN_PROGRESS } from '../../shared/errors.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { reportsStream } from '../../shared/events/tokens/reports.ts';
import { newUser } from '../support/ann.ts';
import { fixture } from '../support/fixture.ts';
import { anyRoom, registeredAgent } from '../support/kit.ts';
import { testDatabase, testOrigin, viewOn } from '../support/world.ts';

describe('repeated requests', function () {
  this.timeout(60_000);
  const models = [usersProjection, agentKeysProjection];
  const { place, view } = viewOn(testDatabase, [...catalogue.values()], models);
  fixture(() => view.project('test'));
  const credentials = fixture(() => createCredentials(place.database, createLogger('silent')));

  /** Runs `act` to its end, then again as the same request; `keep` of its recorded steps had been stored. */
  async function twice<T>(act: (context: CommandContext) => Promise<T>, keep?: number): Promise<[T | undefined, T]> {
    const steps: Intent[] = [];
    const record = async (step: number, intent: Intent) => {
      steps[step] = intent;
    };
    const full = keep === undefined;
    const dying = async (step: number, intent: Intent) => {
      if (!full && step >= (keep as number)) throw new Error('the process died');
      await record(step, intent);
    };
    const first = await act({ origin: testOrigin, intents: { recorded: [], record: dying } }).catch((error) => {
      if (full) throw error;
      return undefined;
    });
    const second = await act({ origin: testOrigin, intents: { recorded: steps.slice(), record } });
    return [first, second];
  }

  /**
   * Runs `act` until it stores its step `at`. That is refused, because another process has taken the request over and run
   * it to its end.
   */
  async function takenOver<T>(
    act: (commands: Commands, context: CommandContext) => Promise<T>,
    at: number,
  ): Promise<T> {
    const { store, counters } = view;
    const other = createCommands({ store, counters });
    const steps: Intent[] = [];
    let result: T | undefined;
    const record = async (step: number, intent: Intent) => {
      if (step >= at) {
        const intents = { recorded: steps.slice(), record: async () => undefined };
        result = await act(other, { origin: testOrigin, intents });
        throw conflict('taken over', { code: RUN_IN_PROGRESS });
      }
      steps[step] = intent;
    };
    const context = { origin: testOrigin, intents: { recorded: [], record } };
    const refusal = await act(view.commands, context).catch((error) => error);
    expect(refusal).to.include({ message: 'taken over' });
    return result as T;
  }

  const passwordsOf = async (id: number) =>
    (await place.database.pool.query('SELECT id FROM credentials.passwords WHERE user_id = $1', [id])).rows.length;

  it('create a user once, with one working password, wherever the first run stopped', async () => {
    // Steps: the number is reserved, the name is claimed, the user is created.
    for (const keep of [undefined, 0, 1, 2]) {
      const username = `user-${keep}`;
      const [, id] = await twice(
        (context) => createUser(view.commands, context, credentials, newUser(username), 'the password'),
        keep,
      );
      const row = await findUserByName(view.reads, username);
      expect(row?.id, username).to.equal(id);
      expect(await credentials.verifyPassword(row?.credential_id ?? null, 'the password')).to.equal(true);
      expect(await passwordsOf(id), username).to.equal(1);
    }
    const names = (await listUsers(view.reads, 1)).map((user) => user.username);
    expect(new Set(names).size).to.equal(names.length);
  });

  it('do not lose what the other run needs when a run is taken over: names and the password', async () => {
    const registration = (name: string) =>
      operatorsRegistration({ name, role: 'coder', session_key: `key of ${name}` });
    for (const at of [0, 1]) {
      const name = `taken-over-${at}`;
      const { id } = await takenOver(
        (commands, context) => registerAgent(commands, context, registration(name), anyRoom),
        at,
      );
      for (const claim of claimsFor(1, { name }))
        expect(await claimantOf(view.commands, claim.kind, 1, claim.name), name).to.equal(agentStream(1, id));
      expect(await claimantOf(view.commands, sessionKeyKind, 'all', `key of ${name}`)).to.equal(agentStream(1, id));
    }
    // Steps: the number is reserved; the name is claimed among all users and in the workspace, and the right to be the
    // first admin; the user is created.
    for (const at of [0, 1, 2, 3, 4]) {
      const username = `user-taken-over-${at}`;
      await takenOver(
        (commands, context) => createUser(commands, context, credentials, newUser(username), 'the password'),
        at,
      );
      const row = await findUserByName(view.reads, username);
      expect(await credentials.verifyPassword(row?.credential_id ?? null, 'the password'), username).to.equal(true);
    }
  });

  it('record token reports without an id once, wherever the first run stopped', async () => {
    const directory: TokenDirectory = {
      lookUp: async () => ({ page: 1, reports: new Map(), agents: new Map(), tasks: new Set(), prices: [] }),
    };
    const given = {
      id: null,
      model: 'm',
      session_id: 's',
      input_tokens: 1,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      operation: 'chat',
      duration: null,
      task_id: null,
      used_at: null,
    };
    // Two appends: what a batch may have, and one more.
    const reports = Array.from({ length: 500 }, (_, outputTokens) => ({ ...given, output_tokens: outputTokens }));
    const recorded = async () => {
      const events = await view.store.readStream(reportsStream(1));
      return events.flatMap(({ data }) =>
        (data.reports as { output_tokens: number }[]).map((one) => one.output_tokens),
      );
    };
    let before = 0;
    for (const keep of [undefined, 0, 1]) {
      const reporting = { directory, subscribedProviders: [], now: Date.now };
      await twice((context) => reportTokens(view.commands, context, reporting, reports, null), keep);
      const all = await recorded();
      expect(all.slice(before), `${keep}`).to.deep.equal(
        reports.map(({ output_tokens: outputTokens }) => outputTokens),
      );
      before = all.length;
    }
  });

  it('give a new key for the same rotation if the first key was lost', async () => {
    const [first, second] = await twice((context) => rotateGlobalKey(view.commands, context, credentials));
    expect(second.key)
      .to.match(/^mc_[0-9a-f]{48}$/)
      .and.not.equal(first?.key);
    expect([second.masked, second.at]).to.deep.equal([first?.masked, first?.at]);
    expect(`${second.key.slice(0, 4)}-****-****-${second.key.slice(-5)}`).to.equal(second.masked);
    const inForce = await findGlobalKey(view.reads);
    expect((await credentials.findKey(second.key))?.keyId).to.equal(inForce?.key_id);
    expect(await credentials.findKey(first?.key ?? '')).to.equal(undefined);
  });

  it('replace a lost agent key with one with the same id and prefix', async () => {
    await view.commands.record(agentStream(1, 9), { origin: testOrigin }, [
      registeredAgent({
        agent_id: 9,
        name: 'scout',
      }),
    ]);
    const request = { workspace: 1, agent_id: 9, name: 'default', scopes: ['viewer'], expiresAt: null };
    const [first, second] = await twice((context) =>
      issueAgentKey(view.commands, context, credentials, request, { most: 100, now: 0 }),
    );
    expect([second.id, second.prefix]).to.deep.equal([first?.id, first?.prefix]);
    expect(second.apiKey).to.match(/^mca_[0-9a-f]{48}$/);
    expect(second.apiKey.slice(0, 12)).to.equal(second.prefix);
    expect(await credentials.findKey(second.apiKey)).to.deep.equal({ kind: 'agent', keyId: second.id });
    expect(await credentials.findKey(first?.apiKey ?? '')).to.equal(undefined);
    expect(await listAgentKeys(view.reads, 1, 9, async () => new Map())).to.have.length(1);
  });
});
