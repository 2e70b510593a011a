/** Structured logs: one JSON object per line on stdout, by pino. */
import { type Logger, pino } from 'pino';

export type { Logger };

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** A logger; secrets in the usual places are removed before a line is written. */
export function createLogger(level: string, file: 'stdout' | 'stderr' = 'stdout'): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: ['password', 'api_key', '*.password', '*.api_key', 'headers.cookie', 'headers.authorization'],
  };
  return file === 'stdout' ? pino(options) : pino(options, pino.destination(2));
}
