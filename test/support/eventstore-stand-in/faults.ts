/** What goes wrong in the stand-in on a test's request. For tests only. */

export interface AppendFault {
  readonly notReady: boolean;
  /** Applied, but never answered: in silence, or because every connection is dropped at that moment. */
  readonly lose: 'silence' | 'connection' | undefined;
  readonly delayMs: number;
}

export interface Counts {
  refusals: number;
  slowDrops: number;
  /** Open now. */
  subscriptions: number;
}

export interface Faults {
  nextAppend(): AppendFault;
  /** True while reads, subscriptions and appends are to be refused as a starting server does. */
  readonly notReady: boolean;
  /** Refuses the next reads and subscriptions with this gRPC status, one each. */
  nextReadStatus(): number | undefined;
  dropConnections(): void;
  /** Grows when the subscriptions of the moment are to fall silent. */
  readonly muted: number;
  /** Counts what was refused and who was dropped. */
  readonly counts: Counts;
  /** Errors of broken calls: expected here, kept for a test that wants to see them. */
  note(error: Error): void;
}

export interface FaultSwitches {
  /** The answers of the next appends are lost although they are applied, one per entry. */
  losing: ('silence' | 'connection')[];
  notReady: boolean;
  /** Appends alone are refused. */
  noLeader: boolean;
  delayMs: number;
  readStatuses: number[];
  muted: number;
  readonly noted: Error[];
  readonly counts: Counts;
}

export const createSwitches = (): FaultSwitches => ({
  losing: [],
  notReady: false,
  noLeader: false,
  delayMs: 0,
  readStatuses: [],
  muted: 0,
  noted: [],
  counts: { refusals: 0, slowDrops: 0, subscriptions: 0 },
});

export function faultsOf(switches: FaultSwitches, dropConnections: () => void): Faults {
  return {
    nextAppend: () => ({
      notReady: switches.notReady || switches.noLeader,
      lose: switches.notReady || switches.noLeader ? undefined : switches.losing.shift(),
      delayMs: switches.delayMs,
    }),
    get notReady() {
      return switches.notReady;
    },
    get muted() {
      return switches.muted;
    },
    nextReadStatus: () => switches.readStatuses.shift(),
    dropConnections,
    counts: switches.counts,
    note: (error) => {
      switches.noted.push(error);
    },
  };
}
