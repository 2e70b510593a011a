/**
 * The register: a strip over the log along the bottom. A drag, or the arrow keys, choose the moment that every view shows.
 * Two marks give what differs between them; a button verifies the log.
 */
import { useState } from 'preact/hooks';
import { setParams, urlOf, useAddress } from '../client/address.ts';
import { timeOfMoment, useAsOf } from '../client/moment.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Dialog } from '../parts/act.tsx';
import { count, fullTime, utc } from '../parts/format.ts';
import { Verdict } from '../parts/verdict.tsx';
import { RANGES, rangeOf, useAlertMarks, useStrip } from './density.ts';
import { StripView } from './strip.tsx';

/** `7d` is what an address without a range shows. */
const paramOf = (range: string) => (range === '7d' ? undefined : range);

export function Register() {
  const { query } = useAddress();
  const { isAdmin } = useRights();
  const moment = useAsOf();
  const range = rangeOf(query.get('range'));
  const strip = useStrip(range);
  const alerts = useAlertMarks(range);
  const [verifying, setVerifying] = useState(false);
  // Where the chosen position or time lies in the log.
  const there = useRead('GET /api/workspaces', moment === undefined ? undefined : {});
  const chosen = timeOfMoment(moment);
  const [dragged, setDragged] = useState<number>();
  const { start, end } = strip;
  const shown = dragged ?? chosen ?? end;
  const show = (at: number, isDragging: boolean) => {
    setDragged(isDragging ? at : undefined);
    const isNow = at >= end - (end - start) / 400;
    setParams({ at: isNow ? undefined : utc(at) }, { replace: true });
  };
  const markOf = (name: string) => timeOfMoment(query.get(name) ?? undefined);
  const marks = { from: markOf('from'), to: markOf('to') };
  const here = () => utc(Math.min(shown, Date.now()));
  const said = moment === undefined ? 'Now' : `As of ${chosen === undefined ? `position ${moment}` : fullTime(chosen)}`;
  return (
    <section class="register" aria-label="Register">
      <div class="said">
        <strong>{said}</strong>
        {moment !== undefined && there.position !== undefined && (
          <span class="dim">position {count(there.position)}</span>
        )}
        {moment !== undefined && there.error && <span class="bad">{there.error.message}</span>}
        {moment === undefined && (
          <span class="dim hint">
            {strip.isWhole ? 'Drag to see the past' : 'Your activities; drag to see the past'}
          </span>
        )}
      </div>
      <StripView
        strip={strip}
        alerts={alerts}
        marks={[
          ['Mark 1', marks.from],
          ['Mark 2', marks.to],
        ]}
        shown={shown}
        said={said}
        show={show}
      />
      <div class="tools">
        <select
          aria-label="Length of the register"
          value={range}
          onChange={(event) => setParams({ range: paramOf(event.currentTarget.value) }, { replace: true })}
        >
          {Object.keys(RANGES).map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        {isAdmin &&
          (['from', 'to'] as const).map((name, n) => (
            <button
              key={name}
              type="button"
              title={
                marks[name] === undefined
                  ? `Mark the moment that is shown as the ${n === 0 ? 'first' : 'second'} of two`
                  : 'Remove this mark'
              }
              aria-pressed={marks[name] !== undefined}
              onClick={() => setParams({ [name]: marks[name] === undefined ? here() : undefined }, { replace: true })}
            >
              Mark {n + 1}
            </button>
          ))}
        {query.get('from') && query.get('to') && <a href={urlOf('/log/diff')}>Difference</a>}
        <button
          type="button"
          class="verify"
          title="Check that the log was not altered"
          onClick={() => setVerifying(true)}
        >
          Verify
        </button>
        {moment !== undefined && (
          <button type="button" class="main" onClick={() => setParams({ at: undefined })}>
            Now
          </button>
        )}
      </div>
      {verifying && (
        <Dialog title="Was the log altered?" close={() => setVerifying(false)}>
          <Verdict startsAtOnce />
        </Dialog>
      )}
    </section>
  );
}
