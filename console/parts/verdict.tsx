/** The button that verifies the log, and its verdict. */
import { useEffect, useState } from 'preact/hooks';
import { background } from '../client/background.ts';
import { CallError } from '../client/client.ts';
import { useRights } from '../client/session.ts';
import { keptCheckpoint, type Step, verifyLog } from '../client/verify.ts';
import { Failure, State } from './basic.tsx';
import { count, time } from './format.ts';

interface VerdictProps {
  /** Id of an event that must be in the log. */
  readonly event?: string | undefined;
  readonly startsAtOnce?: boolean;
}

export function Verdict({ event, startsAtOnce = false }: VerdictProps) {
  const { ofDeployment } = useRights();
  const [steps, setSteps] = useState<readonly Step[]>();
  const [error, setError] = useState<CallError>();
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setError(undefined);
    setSteps(undefined);
    try {
      setSteps(await verifyLog(ofDeployment, event));
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
  const isWhole = steps?.every(({ good }) => good);
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
          {busy ? 'Checking …' : steps ? 'Verify again' : 'Verify'}
        </button>
      </p>
      <div aria-live="assertive">
        {steps && (
          <div class={`verdict ${isWhole ? 'good' : 'bad'}`}>
            <p class="big">{isWhole ? '✓ Whole' : '✕ Altered'}</p>
            <ul class="lines">
              {steps.map(({ good, text }) => (
                <li key={text}>
                  <State is="step" tone={good ? 'good' : 'bad'} text={good ? 'holds' : 'fails'} /> {text}
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
