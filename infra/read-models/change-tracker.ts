/** Tracks when this process last changed each read model, for each workspace, and which it is changing now. Bounded. */
import { type Concerns, createConcerns } from './concerns.ts';

/** Maximum number of remembered workspaces per read model. A forgotten one counts as changed at that moment. */
const REMEMBERED = 10_000;

interface Changes {
  any: number;
  /** Position at which all workspaces that are not in `workspaces` count as changed. */
  floor: number;
  readonly workspaces: Map<number, number>;
}

/** The batches of a read model that this process writes. */
interface Batches {
  begun: number;
  /** The last one has not ended. */
  open: boolean;
  /** Position of the last one that changed rows, or a later one of which the rows are known. */
  changed: number;
}

/** The rows of a read model while no batch is being written. */
export interface Quiet {
  /** Changes with every batch. */
  readonly mark: string;
  /** A position at or after the last change, at which the rows stood as they do now; infinite: not known. */
  readonly changed: number;
}

export interface ChangeTracker {
  /** Call this before a batch is written. */
  begin(schema: string): void;
  /** Call this when it has been written. A batch without an end may have been written: it stays open until `reset`. */
  end(schema: string): void;
  /** Undefined while a batch is being written. */
  quiet(schema: string): Quiet | undefined;
  record(schema: string, workspace: number, position: number): void;
  /** Changes of rows by the agents that they concern. */
  readonly concerns: Pick<Concerns, 'record' | 'after'>;
  /**
   * Call this when the tables were swapped or reloaded: everything counts as changed.
   *
   * @param position which the rows show; default: not known
   */
  reset(schema: string, position?: number): void;
  last(schema: string, workspace: number | 'all'): string;
  /** Changes at each `reset`. */
  resets(): number;
}

export function createChangeTracker(): ChangeTracker {
  const models = new Map<string, Changes>();
  const batches = new Map<string, Batches>();
  const concerns = createConcerns();
  let resets = 0;
  const of = (schema: string): Changes => {
    let one = models.get(schema);
    if (!one) {
      one = { any: 0, floor: 0, workspaces: new Map() };
      models.set(schema, one);
    }
    return one;
  };
  const batchesOf = (schema: string): Batches => {
    let one = batches.get(schema);
    if (!one) {
      one = { begun: 0, open: false, changed: Number.POSITIVE_INFINITY };
      batches.set(schema, one);
    }
    return one;
  };
  return {
    begin(schema) {
      const one = batchesOf(schema);
      one.begun++;
      one.open = true;
    },
    end(schema) {
      batchesOf(schema).open = false;
    },
    quiet(schema) {
      const { begun, open, changed } = batchesOf(schema);
      return open ? undefined : { mark: `${resets}.${begun}`, changed };
    },
    record(schema, workspace, position) {
      batchesOf(schema).changed = position;
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
    concerns,
    reset(schema, position = Number.POSITIVE_INFINITY) {
      resets++;
      // Another log may have lower positions.
      concerns.clear();
      models.delete(schema);
      batches.set(schema, { begun: 0, open: false, changed: position });
    },
    last(schema, workspace) {
      const one = models.get(schema);
      if (!one) return `${resets}`;
      return `${resets}.${workspace === 'all' ? one.any : (one.workspaces.get(workspace) ?? one.floor)}`;
    },
    resets: () => resets,
  };
}
