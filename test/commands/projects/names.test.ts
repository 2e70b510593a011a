/** Unique slugs and ticket prefixes, asked for by many in several processes at once, on a log in memory. */
import { expect } from 'chai';
import { claimName } from '../../../commands/claims.ts';
import type { CommandContext, Commands } from '../../../commands/handler.ts';
import { createProject, ensureGeneral, updateProject } from '../../../commands/projects/changes.ts';
import { projectSlugKind } from '../../../commands/projects/names.ts';
import { GENERAL, type NewProject, projectDecider, projectStream } from '../../../commands/projects/projects.ts';
import type { FoundProject, ProjectDirectory } from '../../../queries/projects/projects.ts';
import type { AppError } from '../../../shared/errors.ts';
import { projectCreated } from '../../../shared/events/projects/projects.ts';
import { fixtureForEach } from '../../support/fixture.ts';
import { outcomeOf } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

const context = (): CommandContext => ({ origin: testOrigin });
const project = (slug: string, ticketPrefix: string): NewProject => ({
  name: slug,
  slug,
  ticket_prefix: ticketPrefix,
  description: null,
  github_repo: null,
  deadline: null,
  color: null,
});

describe('project names', () => {
  const world = fixtureForEach(() => memoryWorld());
  const one = fixtureForEach(() => world.process());
  const two = fixtureForEach(() => world.process());
  const prefixOf = async (id: number) =>
    (await world.process().load(projectDecider, projectStream(1, id))).state.prefix;
  const create = async (slug: string, prefix: string) =>
    (await createProject(one, context(), project(slug, prefix))).id;

  it('a slug is given once to concurrent requests of two processes; the losers’ prefixes stay free', async () => {
    const asked = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        outcomeOf(createProject(n % 2 ? one : two, context(), project('site', `P${n}`))),
      ),
    );
    expect(asked.filter((outcome) => outcome === 'done')).to.have.length(1);
    expect(asked.filter((outcome) => outcome === 'NAME_TAKEN')).to.have.length(49);
    const others = await Promise.all(
      asked.map((outcome, n) =>
        outcome === 'done' ? outcome : outcomeOf(createProject(one, context(), project(`site-${n}`, `P${n}`))),
      ),
    );
    expect(new Set(others)).to.deep.equal(new Set(['done']));
  });

  it('a prefix is given to one of many concurrent changes, and can be released again', async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, (_, n) => create(`site-${n}`, `P${n}`)));
    const asked = await Promise.all(
      ids.map((id, n) => outcomeOf(updateProject(n % 2 ? one : two, context(), id, { ticket_prefix: 'API' }))),
    );
    expect(asked.filter((outcome) => outcome === 'done')).to.have.length(1);
    const prefixes = await Promise.all(ids.map(prefixOf));
    expect(prefixes.filter((prefix) => prefix === 'API')).to.have.length(1);
    expect(new Set(prefixes).size).to.equal(ids.length);
    const winner = ids[asked.indexOf('done')] as number;
    await updateProject(one, context(), winner, { ticket_prefix: 'WEB' });
    expect(await outcomeOf(createProject(two, context(), project('api', 'API')))).to.equal('done');
  });

  it('prefixes that are swapped and changed concurrently never belong to two projects', async () => {
    const ids = [await create('a', 'AA'), await create('b', 'BB'), await create('c', 'CC')];
    const wanted = ['AA', 'BB', 'CC', 'DD'];
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        ids.map((id, n) =>
          outcomeOf(
            updateProject(n % 2 ? one : two, context(), id, {
              ticket_prefix: wanted[(n + round) % wanted.length] as string,
            }),
          ),
        ),
      );
      const prefixes = await Promise.all(ids.map(prefixOf));
      expect(new Set(prefixes).size, prefixes.join(' ')).to.equal(ids.length);
    }
  });

  it('the first request that needs the general project creates it, and only once', async () => {
    const directory = (commands: Commands): ProjectDirectory => {
      const general = async (): Promise<FoundProject | undefined> => {
        const made = world.written().find(({ type }) => type === projectCreated.type);
        if (!made) return undefined;
        const { id, prefix, slug, name } = (await commands.load(projectDecider, made.stream)).state;
        return { id, prefix, slug, name, status: 'active' };
      };
      return { find: async () => undefined, general, placeFor: general };
    };
    const found = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const commands = n % 2 ? one : two;
        return ensureGeneral(commands, context(), directory(commands));
      }),
    );
    expect(new Set(found.map(({ id }) => id)).size).to.equal(1);
    expect(found[0]).to.deep.include({ slug: GENERAL.slug, prefix: GENERAL.ticket_prefix });
    expect(world.written().filter(({ type }) => type === projectCreated.type)).to.have.length(1);
  });

  it('a general project created by another process is found in the log while the read models lag', async () => {
    const behind: ProjectDirectory = {
      find: async () => undefined,
      general: async () => undefined,
      placeFor: async () => undefined,
    };
    const made = await ensureGeneral(one, context(), behind);
    expect(await ensureGeneral(two, context(), behind)).to.deep.equal(made);
  });

  it('a general project that is claimed but never created is waited for, then reported as unavailable', async () => {
    const behind: ProjectDirectory = {
      find: async () => undefined,
      general: async () => undefined,
      placeFor: async () => undefined,
    };
    await claimName(one, context(), projectSlugKind, context().origin.workspace, GENERAL.slug, 'project-1-999');
    const refusal = await ensureGeneral(two, context(), behind, 50).catch((error: unknown) => error);
    expect(refusal).to.deep.include({ status: 503 });
    expect((refusal as AppError).message).to.include('try again');
  });
});
