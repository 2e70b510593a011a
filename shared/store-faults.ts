/**
 * Failures of a store: which ones they are, and what an operator and a caller should do. No request is at fault,
 * so responses are 503, and followers of the log repeat the work instead of reporting an event as unusable.
 *
 * Classified by SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html), by the system's error code,
 * and by the messages of `pg` that have no code.
 */

export interface StoreFault {
  /** For programs, in the response as `code`. */
  readonly code: string;
  /** A sentence about what is wrong, and one about what to do. */
  readonly message: string;
  /** Seconds after which a repetition may succeed. */
  readonly retrySeconds: number;
}

const SOON = 'try again in a moment.';
const AWAY: StoreFault = {
  code: 'STORE_UNAVAILABLE',
  message: `A store behind this service cannot be reached; ${SOON}`,
  retrySeconds: 5,
};
const SLOW: StoreFault = { ...AWAY, message: `The database did not respond in time; ${SOON}` };
const BUSY: StoreFault = { ...AWAY, message: `All connections to the database are in use; ${SOON}` };
const RACE: StoreFault = {
  ...AWAY,
  message: `The database could not run concurrent transactions; ${SOON}`,
  retrySeconds: 1,
};
const READ_ONLY: StoreFault = {
  code: 'STORE_READ_ONLY',
  message:
    'The database accepts no writes: it is a standby, or read-only by a setting. Operators: promote it, set DATABASE_URL to the primary, or turn default_transaction_read_only off. Callers: try again later.',
  retrySeconds: 10,
};
const FULL: StoreFault = {
  code: 'STORE_FULL',
  message:
    'The disk of the database or of the event log is full. Operators: free space on it, or enlarge it; no restart is needed. Callers: try again later.',
  retrySeconds: 30,
};
const NO_MEMORY: StoreFault = {
  code: 'STORE_OUT_OF_RESOURCES',
  message:
    'The database has run out of memory or of another resource. Operators: look at its log, and give it more, or lower DATABASE_POOL. Callers: try again later.',
  retrySeconds: 10,
};
const DAMAGED: StoreFault = {
  code: 'STORE_DAMAGED',
  message:
    'The database cannot read or write its files. Operators: look at its log and check the disk; if files are damaged, restore a backup. Callers: try again later.',
  retrySeconds: 60,
};
const REFUSED: StoreFault = {
  code: 'STORE_REFUSED',
  message:
    "The database refuses this service's account. Operators: check the user, the password and the database in DATABASE_URL, and the user's rights. Callers: try again later.",
  retrySeconds: 30,
};

const BY_CODE: Readonly<Record<string, StoreFault>> = {
  ECONNREFUSED: AWAY,
  ECONNRESET: AWAY,
  EPIPE: AWAY,
  // The socket of an embedded database whose process has ended.
  ENOENT: AWAY,
  ETIMEDOUT: AWAY,
  ENOTFOUND: AWAY,
  EAI_AGAIN: AWAY,
  EHOSTUNREACH: AWAY,
  ENETUNREACH: AWAY,
  ENOSPC: FULL,
  EDQUOT: FULL,
  EFBIG: FULL,
  EROFS: READ_ONLY,
  EIO: DAMAGED,
  '25006': READ_ONLY,
  '40001': RACE,
  '40P01': RACE,
  '42501': REFUSED,
  '3D000': REFUSED,
  '53100': FULL,
  '53300': BUSY,
  '55P03': SLOW,
  '57014': SLOW,
  XX001: DAMAGED,
  XX002: DAMAGED,
};

/** By the first two characters of an SQLSTATE. */
const BY_CLASS: Readonly<Record<string, StoreFault>> = {
  '08': AWAY,
  '28': REFUSED,
  '53': NO_MEMORY,
  '57': AWAY,
  '58': DAMAGED,
  F0: DAMAGED,
};

const BY_MESSAGE: readonly (readonly [RegExp, StoreFault])[] = [
  // PostgreSQL reports a failed write of its log with the code of the system call's class.
  [/No space left on device|Disk quota exceeded|File too large/, FULL],
  [/Query read timeout/, SLOW],
  [/timeout exceeded when trying to connect/, BUSY],
  [/Connection terminated|Client has encountered a connection error|not queryable/, AWAY],
];

/** What a store reports with this error; undefined: it is none of a store, or one of a statement. */
export function storeFaultOf(error: unknown): StoreFault | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'LogUnavailableError') return logFault(error);
  const { code } = error as { readonly code?: unknown };
  const byMessage = BY_MESSAGE.find(([pattern]) => pattern.test(error.message))?.[1];
  if (typeof code !== 'string') return code === undefined ? byMessage : undefined;
  const byCode = BY_CODE[code] ?? (code.length === 5 ? BY_CLASS[code.slice(0, 2)] : undefined);
  return byCode === DAMAGED || byCode === NO_MEMORY ? (byMessage ?? byCode) : byCode;
}

/** The log's own error may know more than that it is away: what its adapter says, or the failure that caused it. */
function logFault(error: Error & { readonly remedy?: string | undefined }): StoreFault {
  if (error.remedy !== undefined) return { ...AWAY, message: `${error.remedy} Callers: ${SOON}` };
  return storeFaultOf(error.cause) ?? AWAY;
}

/** Whether the same work may succeed later without any change of it. */
export const isStoreFault = (error: unknown): boolean => storeFaultOf(error) !== undefined;
