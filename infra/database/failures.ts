/** Distinguishes an unreachable database from one that rejects the statement: only the former is worth a retry. */

/** Transient errors, from https://www.postgresql.org/docs/current/errcodes-appendix.html. */
const TRANSIENT_CODES = new Set([
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now: starting or shutting down
  '57014', // query_canceled: statement time-out
  '53300', // too_many_connections
  '40001', // serialization_failure
  '40P01', // deadlock_detected
]);
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
]);
/** Errors of `pg` that have no code. */
const CODELESS = [
  /Connection terminated/,
  /timeout exceeded when trying to connect/,
  /Query read timeout/,
  /Client has encountered a connection error/,
  /not queryable/,
];

export function isConnectionFailure(error: Error): boolean {
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return code.startsWith('08') || TRANSIENT_CODES.has(code) || SOCKET_CODES.has(code);
  return CODELESS.some((pattern) => pattern.test(error.message));
}
