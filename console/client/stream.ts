/**
 * The event stream, over fetch: unlike EventSource, it shows the status of a refusal. It resumes after the last id that
 * it got; a silence longer than the comment lines of the service counts as a lost connection.
 */
import { background } from './background.ts';
import { CallError, errorOf } from './client.ts';
import { store } from './store.ts';

export interface Frame {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>> | null;
  /** Unix milliseconds. */
  readonly timestamp: number;
}

/** `live`; `connecting` for the first time; `stale` while the connection is lost; `off` when nobody is signed in. */
export type Link = 'connecting' | 'live' | 'stale' | 'off';
export const link = store<Link>('off');
/** When the connection was last known to be good, Unix milliseconds. */
export const lastHeard = store(0);

const SILENCE_MS = 45_000;
const LONGEST_WAIT_MS = 15_000;

const listeners = new Set<(frame: Frame) => void>();
export function onFrame(listener: (frame: Frame) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
const reloads = new Set<() => void>();
/** Called when frames may have been missed: lists have to be loaded again. */
export function onGap(listener: () => void): () => void {
  reloads.add(listener);
  return () => reloads.delete(listener);
}
const gap = () => {
  for (const one of [...reloads]) one();
};

let lastId: string | undefined;
let stop: AbortController | undefined;

/** Frames of a piece of the stream; what follows the last empty line is returned as the rest. */
export function readFrames(text: string): {
  readonly frames: readonly { id?: string; frame: Frame }[];
  readonly rest: string;
} {
  const blocks = text.split('\n\n');
  const rest = blocks.pop() ?? '';
  const frames = blocks.flatMap((block) => {
    const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line));
    const data = fields.flatMap((field) => (field?.[1] === 'data' ? [field[2]] : [])).join('\n');
    const id = fields.find((field) => field?.[1] === 'id')?.[2];
    return data ? [{ ...(id !== undefined && { id }), frame: JSON.parse(data) as Frame }] : [];
  });
  return { frames, rest };
}

async function follow(signal: AbortSignal): Promise<void> {
  const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
  const silence = new AbortController();
  const both = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const response = await fetch('/api/events', { headers, signal: both, credentials: 'same-origin' });
    if (!response.ok || !response.body) throw await errorOf(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      lastHeard.set(Date.now());
      const { frames, rest } = readFrames(held + value);
      held = rest;
      for (const { id, frame } of frames) {
        if (id !== undefined) lastId = id;
        if (frame.type === 'connected') {
          link.set('live');
          if (frame.data !== null) gap();
        } else for (const listener of [...listeners]) listener(frame);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Follows the stream until it is stopped. */
async function run(): Promise<void> {
  stop?.abort();
  const mine = new AbortController();
  stop = mine;
  for (let wait = 500; !mine.signal.aborted; ) {
    const began = Date.now();
    try {
      await follow(mine.signal);
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof CallError && error.status === 401) {
        link.set('off');
        return;
      }
      if (error instanceof CallError && error.code === 'UNKNOWN_EVENT_ID') {
        lastId = undefined;
        gap();
      }
    }
    if (mine.signal.aborted) return;
    link.set('stale');
    wait = Date.now() - began > LONGEST_WAIT_MS ? 500 : Math.min(wait * 2, LONGEST_WAIT_MS);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, wait);
      const now = () => {
        clearTimeout(timer);
        resolve();
      };
      addEventListener('online', now, { once: true });
      mine.signal.addEventListener('abort', now, { once: true });
    });
  }
}

/**
 * A window that nobody sees holds no connection: over HTTP/1.1, a browser opens only six to a host. It resumes where it
 * was when it is seen again.
 */
let isOpen = false;
function followVisibility(): void {
  if (!isOpen) return;
  if (document.visibilityState === 'hidden') stop?.abort();
  else if (stop?.signal.aborted) background(run());
}
document.addEventListener('visibilitychange', followVisibility);
addEventListener('pagehide', () => stop?.abort());
addEventListener('pageshow', followVisibility);

export async function openStream(): Promise<void> {
  isOpen = true;
  link.set('connecting');
  await run();
}

export function closeStream(): void {
  isOpen = false;
  stop?.abort();
  stop = undefined;
  lastId = undefined;
  link.set('off');
}
