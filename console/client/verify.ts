/** Verifies the log in the browser: the signature, that it continues the log seen before and contains an event. */
import { count, time, typeInWords } from '../parts/format.ts';
import { CallError, call } from './client.ts';
import { type Checkpoint, continues, fromBase64, isIncluded, leafOf, openCheckpoint, toBase64 } from './proof.ts';

export interface Kept {
  readonly origin: string;
  readonly size: number;
  readonly root: string;
  readonly key: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** When the first of the checks was that continue each other, Unix milliseconds. */
  readonly since?: number;
}
/** The last checkpoint that this browser has checked; it holds no secret. */
const KEPT = 'signalbox-checkpoint';
export function keptCheckpoint(): Kept | undefined {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

export interface Step {
  readonly outcome: 'holds' | 'fails' | 'open';
  readonly text: string;
}

export interface Verified {
  readonly steps: readonly Step[];
  /** Since when the log has been unchanged, Unix milliseconds; undefined if there was nothing to compare it with. */
  readonly unchangedSince: number | undefined;
}

/** @throws CallError with a readable message */
export async function verifyLog(mayProve: boolean, eventId: string | undefined): Promise<Verified> {
  const steps: Step[] = [];
  const step = (good: boolean, text: string) => steps.push({ outcome: good ? 'holds' : 'fails', text });
  let unchangedSince: number | undefined;
  if (!crypto.subtle)
    throw new CallError(
      'Browsers check signatures only over HTTPS or on this machine. Use `signalbox verify` instead.',
      { status: 0 },
    );
  const { data: key } = await call('GET /api/history/key');
  const { data: note } = await call('GET /api/history/checkpoint');
  let checkpoint: Checkpoint;
  try {
    checkpoint = await openCheckpoint(note, key);
    step(true, `The checkpoint over ${count(checkpoint.size)} events is signed by the key of the log.`);
  } catch (error) {
    step(false, (error as Error).message);
    return { steps, unchangedSince };
  }
  const kept = keptCheckpoint();
  if (kept && kept.key.trim() !== key.trim()) {
    step(false, `The key is not that of the last check here (${time(kept.at)}). Ask the operator why it was replaced.`);
  } else if (kept && kept.origin !== checkpoint.origin) {
    step(
      false,
      `The log is called ${checkpoint.origin} now, and was ${kept.origin} at the last check here (${time(kept.at)}): it was restored or replaced.`,
    );
  } else if (kept && (mayProve || kept.size === checkpoint.size)) {
    const first = { origin: kept.origin, size: kept.size, root: fromBase64(kept.root) };
    const path =
      kept.size < checkpoint.size
        ? (await call('GET /api/history/consistency', { query: { from: kept.size, to: checkpoint.size } })).data.path
        : [];
    const good = await continues(first, checkpoint, path);
    if (good) unchangedSince = kept.since ?? kept.at;
    step(
      good,
      good
        ? `It continues the log of the last check here (${time(kept.at)}): none of the ${count(kept.size)} events was altered or removed.`
        : `It does not continue the log of the last check here (${count(kept.size)} events, ${time(kept.at)}): events were altered or removed. Run \`signalbox verify\`.`,
    );
  } else {
    steps.push({
      outcome: 'open',
      text: kept
        ? `Only admins of the deployment can check whether it continues the log of the last check here (${time(kept.at)}).`
        : 'This browser has kept the checkpoint. The next check here shows whether events under it were altered.',
    });
  }
  if (eventId !== undefined && mayProve) {
    const { data: event } = await call('GET /api/history/events/{id}', { params: { id: eventId } });
    try {
      const { data: proof } = await call('GET /api/history/proof', {
        query: { event: eventId, size: checkpoint.size },
      });
      const good = await isIncluded(await leafOf(event), proof.index, proof.path, checkpoint);
      step(
        good,
        good
          ? `"${typeInWords(event.type)}" is event ${count(proof.index)} under this checkpoint, exactly as it is shown.`
          : `"${typeInWords(event.type)}" is not what the checkpoint was signed for.`,
      );
    } catch (error) {
      if (!(error instanceof CallError) || error.status !== 400) throw error;
      steps.push({
        outcome: 'open',
        text: 'The event is newer than the latest checkpoint, which is signed at most every 30 seconds. Check again then.',
      });
    }
  }
  // One that was not compared with the kept one must not replace it.
  if ((!kept || unchangedSince !== undefined) && !steps.some(({ outcome }) => outcome === 'fails')) {
    const { origin, size, root } = checkpoint;
    const at = Date.now();
    const since = unchangedSince ?? at;
    localStorage.setItem(KEPT, JSON.stringify({ origin, size, root: toBase64(root), key, at, since } satisfies Kept));
  }
  return { steps, unchangedSince };
}
