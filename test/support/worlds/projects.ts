/** What the tests of projects share. */
import { bodyOf } from '../service.ts';
import { startAgentsWorld } from './agents.ts';

export async function startProjectsWorld() {
  const world = await startAgentsWorld();
  let projects = 0;
  return {
    ...world,
    /** Creates a project with a name and a prefix that no other one has. */
    async createProject(fields: object = {}): Promise<{ readonly id: number } & Record<string, unknown>> {
      const n = ++projects;
      const body = { name: `Project ${n}`, ticket_prefix: `P${n}`, ...fields };
      return bodyOf(await world.ask('POST', '/api/projects', body), 201).project;
    },
  };
}
