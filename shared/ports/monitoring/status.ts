/** The machine and the process, as far as operators want to know. */
export interface HostFacts {
  /** Since the machine was started, milliseconds. */
  readonly uptimeMs: number;
  /** Bytes. */
  readonly memory: { readonly total: number; readonly available: number };
  /** Bytes of the disk that holds the data; null: it cannot be read. */
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
