/** Facts about the machine and the process for operators. */
export interface HostFacts {
  /** Time since the machine was started, milliseconds. */
  readonly uptimeMs: number;
  /** Bytes. */
  readonly memory: { readonly total: number; readonly available: number };
  /** Bytes of the disk with the data; null: unknown. */
  readonly disk: { readonly total: number; readonly available: number } | null;
  readonly process: {
    /** Seconds. */
    readonly uptime: number;
    /** Bytes. */
    readonly rss: number;
    readonly heapUsed: number;
    readonly heapTotal: number;
    readonly user: string;
    readonly version: string;
  };
}
export type ReadHost = () => Promise<HostFacts>;
