/** The event stream of the caller, shared by all components. */
import { type Frame, SignalboxError } from '../../client/index.ts';
import { background } from './background.ts';
import { client } from './client.ts';
import { store } from './store.ts';

/** `live`; `connecting` for the first time; `stale` while the connection is lost; `off` when no user is signed in. */
export type Link = 'connecting' | 'live' | 'stale' | 'off';
export const link = store<Link>('off');
/** When the connection was last known to be good, Unix milliseconds. */
export const lastHeard = store(0);

/** Pause after a refusal that is not due to the caller's credential, milliseconds. */
const REFUSED_MS = 15_000;

const listeners = new Set<(frame: Frame) => void>();
export function onFrame(listener: (frame: Frame) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
const reloads = new Set<() => void>();
/** Called when frames may have been missed: lists must be loaded again. */
export function onGap(listener: () => void): () => void {
  reloads.add(listener);
  return () => reloads.delete(listener);
}
const gap = () => {
  for (const one of [...reloads]) one();
};

let lastId: string | undefined;
let stop: AbortController | undefined;

/** Follows the stream until it is stopped. */
async function run(): Promise<void> {
  stop?.abort();
  const mine = new AbortController();
  stop = mine;
  try {
    const frames = client.events({
      since: lastId,
      signal: mine.signal,
      onHeard: () => lastHeard.set(Date.now()),
      onState(now) {
        const wasLost = link.get() === 'stale';
        link.set(now.state === 'live' ? 'live' : 'stale');
        // Frames resume where they ended, but reads may have failed in the meantime.
        if (now.state === 'live' && (now.from !== null || wasLost)) gap();
      },
    });
    for await (const frame of frames) {
      lastId = frame.id;
      for (const listener of [...listeners]) listener(frame);
    }
  } catch (error) {
    if (!(error instanceof SignalboxError)) throw error;
    if (error.status === 401) {
      link.set('off');
      return;
    }
    link.set('stale');
    const isUnknown = error.code === 'UNKNOWN_EVENT_ID';
    if (isUnknown) {
      lastId = undefined;
      gap();
    }
    setTimeout(() => mine === stop && followVisibility(true), isUnknown ? 0 : REFUSED_MS);
  }
}

/**
 * A hidden window holds no connection: over HTTP/1.1, a browser opens only six per host. When shown again, it resumes
 * where it was.
 */
let isOpen = false;
function followVisibility(again = false): void {
  if (!isOpen) return;
  if (document.visibilityState === 'hidden') stop?.abort();
  else if (again || stop?.signal.aborted) background(run());
}
document.addEventListener('visibilitychange', () => followVisibility());
addEventListener('pagehide', () => stop?.abort());
addEventListener('pageshow', () => followVisibility());
addEventListener('online', () => followVisibility(link.get() === 'stale'));

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
