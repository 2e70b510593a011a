/** Tracks when this process last changed each read model for each workspace. Bounded. */

/** Maximum number of remembered workspaces per read model. A forgotten one counts as changed at that moment. */
const REMEMBERED = 10_000;

interface Changes {
  any: number;
  /** Position at which all workspaces that are not in `workspaces` count as changed. */
  floor: number;
  readonly workspaces: Map<number, number>;
}

export interface ChangeTracker {
  record(schema: string, workspace: number, position: number): void;
  /** Call this when the tables were swapped or reloaded: everything counts as changed. */
  reset(schema: string): void;
  last(schema: string, workspace: number | 'all'): string;
}

export function createChangeTracker(): ChangeTracker {
  const models = new Map<string, Changes>();
  let resets = 0;
  const of = (schema: string): Changes => {
    let one = models.get(schema);
    if (!one) {
      one = { any: 0, floor: 0, workspaces: new Map() };
      models.set(schema, one);
    }
    return one;
  };
  return {
    record(schema, workspace, position) {
      const one = of(schema);
      one.any = position;
      one.workspaces.delete(workspace);
      one.workspaces.set(workspace, position);
      if (one.workspaces.size > REMEMBERED) {
        const oldest = one.workspaces.entries().next().value as [number, number];
        one.workspaces.delete(oldest[0]);
        one.floor = Math.max(one.floor, oldest[1]);
      }
    },
    reset(schema) {
      resets++;
      models.delete(schema);
    },
    last(schema, workspace) {
      const one = models.get(schema);
      if (!one) return `${resets}`;
      return `${resets}.${workspace === 'all' ? one.any : (one.workspaces.get(workspace) ?? one.floor)}`;
    },
  };
}
