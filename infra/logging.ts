/** Structured logs: one JSON object per line on stdout, by pino. */
import { type Logger, pino } from 'pino';
import { currentTraceparent, idsOf } from '../shared/ports/tracing.ts';
import { maskedAddresses } from '../shared/secret-texts.ts';

export type { Logger };

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Receives the lines at warn and above, whatever the level of the printed lines. */
export interface LineTaker {
  take(line: string): void;
}

/** The ids of a line's trace, as a `mixin`. */
export function traceIds(): object {
  const traceparent = currentTraceparent();
  return traceparent === undefined ? {} : idsOf(traceparent);
}

/** A logger; secrets in the usual places and in addresses are removed before a line is written. */
export function createLogger(
  level: string,
  file: 'stdout' | 'stderr' = 'stdout',
  taker?: LineTaker,
  mixin?: () => object,
): Logger {
  const options = {
    level,
    base: null,
    ...(mixin && { mixin }),
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: ['password', 'api_key', '*.password', '*.api_key', 'headers.cookie', 'headers.authorization'],
  };
  const printed = masking(file === 'stdout' ? turnByTurn() : destination(2));
  if (!taker) return pino(options, printed);
  const streams = [
    { level: 'warn' as const, stream: { write: (line: string) => taker.take(maskedAddresses(line)) } },
    ...(level === 'silent' ? [] : [{ level: level as pino.Level, stream: printed }]),
  ];
  const lowest = LOG_LEVELS.indexOf(level as (typeof LOG_LEVELS)[number]) > LOG_LEVELS.indexOf('warn') ? 'warn' : level;
  return pino({ ...options, level: lowest }, pino.multistream(streams));
}

export interface TakenLines extends LineTaker {
  /** Returns the oldest lines; they stay until `drop`. */
  first(count: number): readonly string[];
  drop(count: number): void;
  /** How many lines were dropped since the last call. */
  lost(): number;
}

/** Holds lines until they are stored, up to limits of lines and characters; further lines are only counted. */
export function holdLines({ lines: most = 1_000, characters: mostCharacters = 1_000_000 } = {}): TakenLines {
  let held: string[] = [];
  let characters = 0;
  let lost = 0;
  return {
    take(line) {
      if (held.length >= most || characters + line.length > mostCharacters) {
        lost++;
        return;
      }
      held.push(line);
      characters += line.length;
    },
    first: (count) => held.slice(0, count),
    drop(count) {
      for (const line of held.slice(0, count)) characters -= line.length;
      held = held.slice(count);
    },
    lost() {
      const since = lost;
      lost = 0;
      return since;
    },
  };
}

/** Above this number of characters, lines are written before the end of a turn. */
const MOST_IN_A_TURN = 16_000;
/** Maximum number of characters held while they cannot be written, as on a full disk. Further lines are lost. */
const MOST_KEPT = 1_000_000;

/** Lines that cannot be written are lost, because there is no other place to report the error. */
function destination(fd: number) {
  const out = pino.destination({ fd, sync: true, maxLength: MOST_KEPT });
  out.on('error', () => undefined);
  return out;
}

interface Output {
  write(line: string): unknown;
  /** Pino calls this after a fatal line. */
  flushSync(): void;
}

/** Removes secrets in addresses, such as that of the database, which errors of libraries quote. */
const masking = (out: Output): Output => ({
  write: (line) => out.write(maskedAddresses(line)),
  flushSync: () => out.flushSync(),
});

let stdout: Output | undefined;

/**
 * Writes the lines of a turn of the event loop at its end, in one system call. One per process, for all loggers.
 *
 * Nothing here may end or block the process when stdout fails: once its reader has exited, lines are dropped. (The
 * destination's own `flushSync` would retry for ever.)
 */
function turnByTurn(): Output {
  if (stdout) return stdout;
  const out = destination(1);
  let lines = '';
  let waiting = false;
  const flush = () => {
    waiting = false;
    const text = lines;
    lines = '';
    if (text !== '') out.write(text);
  };
  process.on('exit', flush);
  stdout = {
    write(line) {
      lines += line;
      if (lines.length >= MOST_IN_A_TURN) flush();
      else if (!waiting) {
        waiting = true;
        setImmediate(flush);
      }
    },
    flushSync: flush,
  };
  return stdout;
}
