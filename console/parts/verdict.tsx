/** The button that verifies the log, and its verdict. */
import { useEffect, useState } from 'preact/hooks';
import { background } from '../client/background.ts';
import { CallError } from '../client/client.ts';
import { useRights } from '../client/session.ts';
import { keptCheckpoint, type Verified, verifyLog } from '../client/verify.ts';
import { Failure, State } from './basic.tsx';
import { count, time } from './format.ts';

interface VerdictProps {
  /** Id of an event that must be in the log. */
  readonly event?: string | undefined;
  readonly startsAtOnce?: boolean;
}

const TONES = { holds: 'good', fails: 'bad', open: 'wait' } as const;

/** What a check without a failure has shown: a signature alone says nothing about earlier events. */
const verdictOf = ({ unchangedSince }: Verified): string =>
  unchangedSince === undefined ? 'The signature is valid' : `Unchanged since ${time(unchangedSince)}`;

export function Verdict({ event, startsAtOnce = false }: VerdictProps) {
  const { ofDeployment } = useRights();
  const [verified, setVerified] = useState<Verified>();
  const [error, setError] = useState<CallError>();
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setError(undefined);
    setVerified(undefined);
    try {
      setVerified(await verifyLog(ofDeployment, event));
    } catch (reason) {
      if (!(reason instanceof CallError)) throw reason;
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    if (startsAtOnce) background(run());
  }, []);
  const kept = keptCheckpoint();
  const failed = verified?.steps.some(({ outcome }) => outcome === 'fails');
  return (
    <>
      <p>
        The service signs a tree over all events. The browser checks the signature and that the log continues the one it
        saw before{event ? '; it also checks that the chosen event is in the log' : ''}. It computes this itself,
        without trusting the service.
      </p>
      {kept && (
        <p class="dim">
          Kept in this browser: {count(kept.size)} events of {kept.origin}, checked {time(kept.at)}
        </p>
      )}
      <p>
        <button type="button" class="main" disabled={busy} aria-busy={busy} onClick={() => background(run())}>
          {busy ? 'Checking …' : verified ? 'Verify again' : 'Verify'}
        </button>
      </p>
      <div aria-live="assertive">
        {verified && (
          <div class={`verdict ${failed ? 'bad' : 'good'}`}>
            <p class="big">{failed ? '✕ Verification failed' : `✓ ${verdictOf(verified)}`}</p>
            <ul class="lines">
              {verified.steps.map(({ outcome, text }) => (
                <li key={text}>
                  <State is={outcome} tone={TONES[outcome]} /> {text}
                </li>
              ))}
            </ul>
          </div>
        )}
        {error && <Failure error={error} retry={() => background(run())} />}
      </div>
      <p class="dim">
        Auditors verify the whole log, event by event, with <code>signalbox export-events --signed</code> and{' '}
        <code>signalbox verify</code>.
      </p>
    </>
  );
}
