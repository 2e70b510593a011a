/**
 * The event stream as an async iterator. It resumes after the last frame that it returned, through lost connections and
 * restarts of the service, so no frame is missed or returned twice.
 *
 * Frames are read on demand: the buffer holds at most one chunk of the connection and one incomplete frame. A slow
 * consumer slows the connection down; the service ends a connection that is not read for 30 s, and the stream resumes.
 */
import { errorOf, failureOf, SignalboxError } from './errors.ts';
import { pause, pauseOf } from './retry.ts';

export interface Frame {
  /** The place in the stream; pass it as `since` to resume after this frame. */
  readonly id: string;
  /** Such as `task.updated`. */
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>> | null;
  /** When the event happened, Unix milliseconds. */
  readonly timestamp: number;
}

export type StreamState =
  /** `from`: the stream begins at this time, later than requested, Unix ms: load lists again. Null: no gap. */
  | { readonly state: 'live'; readonly from: number | null }
  /** The connection is lost; the next attempt follows after the pause. */
  | { readonly state: 'lost'; readonly error: SignalboxError | undefined; readonly retryMs: number };

export interface StreamOptions {
  /** Resume after the frame with this id; `0`: the beginning of the log. Default: what happens from now on. */
  readonly since?: string | undefined;
  /** Types of frames; default: all. */
  readonly kinds?: readonly string[] | undefined;
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined;
  /** A connection without data for this long is lost, ms. The service sends a line every 15 s. Default 45,000. */
  readonly silenceMs?: number | undefined;
  /** Called when the connection is established and when it is lost. */
  readonly onState?: ((state: StreamState) => void) | undefined;
  /** Called whenever something arrives, including a line that only keeps the connection alive. */
  readonly onHeard?: (() => void) | undefined;
  /** The longest pause before the next attempt, milliseconds. Default 15,000. */
  readonly longestPauseMs?: number | undefined;
}

/** Opens one connection. */
export type Connect = (options: {
  readonly lastId: string | undefined;
  readonly kinds: readonly string[] | undefined;
  readonly signal: AbortSignal;
}) => Promise<Response>;

const SILENCE_MS = 45_000;
const LONGEST_PAUSE_MS = 15_000;
const FIRST_PAUSE_MS = 500;
/** Maximum number of characters in a frame; the service does not accept events that large. */
const MAX_FRAME = 16_000_000;

/** @throws SignalboxError when the service refuses the stream (400, 401, 403, 404) or redirects: repeating the request would not help */
export async function* frames(connect: Connect, options: StreamOptions = {}): AsyncGenerator<Frame, void, undefined> {
  const { signal, onState, longestPauseMs = LONGEST_PAUSE_MS } = options;
  let lastId = options.since;
  for (let failures = 0; !signal?.aborted; ) {
    let error: SignalboxError | undefined;
    try {
      for await (const { id, ...frame } of connection(connect, lastId, options)) {
        failures = 0;
        if (frame.type === 'connected') {
          onState?.({ state: 'live', from: fromOf(frame.data) });
          continue;
        }
        yield { id, ...frame };
        // Only after the consumer has taken the frame.
        if (id !== '') lastId = id;
      }
    } catch (reason) {
      if (signal?.aborted) return;
      if (!(reason instanceof SignalboxError) || !isTransient(reason)) throw reason;
      error = reason;
    }
    if (signal?.aborted) return;
    failures++;
    const retryMs = pauseOf(failures, { longestPauseMs, firstPauseMs: FIRST_PAUSE_MS }, error?.retryAfterMs);
    onState?.({ state: 'lost', error, retryMs });
    await pause(retryMs, signal);
  }
}

const isTransient = ({ status, code }: SignalboxError): boolean =>
  code !== 'REDIRECTED' && (status === 0 || status === 408 || status === 429 || status >= 500);

function fromOf(data: Frame['data']): number | null {
  const from = data?.from;
  return typeof from === 'number' ? from : null;
}

/** The frames of one connection; `connected` among them, whose id is empty. */
async function* connection(
  connect: Connect,
  lastId: string | undefined,
  { kinds, signal, silenceMs = SILENCE_MS, onHeard }: StreamOptions,
): AsyncGenerator<Frame, void, undefined> {
  const ending = new AbortController();
  const end = () => ending.abort();
  signal?.addEventListener('abort', end);
  if (signal?.aborted) end();
  /** The time-out covers only the wait for the connection: a consumer may take as long as it likes. */
  const heard = async <T>(waiting: Promise<T>): Promise<T> => {
    const timer = setTimeout(() => ending.abort(new DOMException('silent', 'TimeoutError')), silenceMs);
    try {
      const value = await waiting;
      onHeard?.();
      return value;
    } catch (cause) {
      throw failureOf(cause, { aborted: signal?.aborted ?? false, timeoutMs: silenceMs });
    } finally {
      clearTimeout(timer);
    }
  };
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    const response = await heard(connect({ lastId, kinds, signal: ending.signal }));
    if (!response.ok) throw await heard(errorOf(response));
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
    if (!response.body || !isStream)
      throw new SignalboxError('The URL does not lead to an event stream of Signalbox; check it.', { status: 404 });
    reader = response.body.getReader();
    const decoder = new TextDecoder();
    let held = '';
    for (;;) {
      const { done, value } = await heard(reader.read());
      if (done) return;
      const { complete, rest } = readFrames(held + decoder.decode(value, { stream: true }));
      held = rest;
      if (held.length > MAX_FRAME)
        throw new SignalboxError('A frame of the event stream is too large.', { status: 413 });
      yield* complete;
    }
  } finally {
    signal?.removeEventListener('abort', end);
    reader?.releaseLock();
    // Ends the connection when the consumer stops reading.
    end();
  }
}

/**
 * Reads Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html): fields `id` and `data`,
 * lines that end with LF, CR or both. Text after the last empty line is returned as the rest.
 */
export function readFrames(text: string): { readonly complete: readonly Frame[]; readonly rest: string } {
  // A CR at the end may be the first half of CR LF.
  const cut = text.endsWith('\r') ? text.slice(0, -1) : text;
  const blocks = cut.replace(/\r\n?/g, '\n').split('\n\n');
  const rest = (blocks.pop() ?? '') + text.slice(cut.length);
  const complete = blocks.flatMap((block): Frame[] => {
    let id = '';
    const data: string[] = [];
    for (const line of block.split('\n')) {
      const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
      if (name === 'data') data.push(value);
      else if (name === 'id') id = value;
    }
    return data.length === 0 ? [] : [{ id, ...(JSON.parse(data.join('\n')) as Omit<Frame, 'id'>) }];
  });
  return { complete, rest };
}
