/**
 * The register: a strip for the log at the bottom of the window. Dragging, or the arrow keys, select the moment that
 * every view shows. Two marks select the moments of a comparison; a button verifies the log.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { setParams, urlOf, useAddress } from '../client/address.ts';
import { timeOfMoment, useAsOf } from '../client/moment.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Dialog } from '../parts/act.tsx';
import { count, fullTime, utc } from '../parts/format.ts';
import { Verdict } from '../parts/verdict.tsx';
import { RANGES, rangeOf, useAlertMarks, useStrip } from './density.ts';
import { StripView } from './strip.tsx';
import { momentTyped, TYPED_HINT } from './typed.ts';

/** While the hand is dragged, views follow when it has not moved for this long, milliseconds. */
const REST_MS = 150;

/** `7d` is the default of a URL without a range. */
const paramOf = (range: string) => (range === '7d' ? undefined : range);

/** A field for a moment that is known exactly. */
function GoTo() {
  const input = useRef<HTMLInputElement>(null);
  const submit = () => {
    const field = input.current;
    if (!field) return;
    const typed = momentTyped(field.value, Date.now());
    if ('fault' in typed) {
      field.setCustomValidity(typed.fault);
      field.reportValidity();
      return;
    }
    field.value = '';
    setParams({ at: typed.at });
  };
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <input
        ref={input}
        aria-label="Go to a moment"
        placeholder="Go to 14:30 …"
        title={TYPED_HINT}
        autocomplete="off"
        onInput={(event) => event.currentTarget.setCustomValidity('')}
      />
    </form>
  );
}

export function Register() {
  const { query } = useAddress();
  const { isAdmin } = useRights();
  const moment = useAsOf();
  const range = rangeOf(query.get('range'));
  const strip = useStrip(range);
  const alerts = useAlertMarks(range);
  const [verifying, setVerifying] = useState(false);
  // Finds the place of the chosen position or time in the log.
  const there = useRead('GET /api/workspaces', moment === undefined ? undefined : {});
  const chosen = timeOfMoment(moment);
  const [dragged, setDragged] = useState<number>();
  const { start, end } = strip;
  const shown = dragged ?? chosen ?? end;
  const isNow = (at: number) => at >= end - (end - start) / 400;
  // Moments have whole seconds; that of the first event begins before it.
  const choose = (at: number) =>
    setParams({ at: isNow(at) ? undefined : utc(Math.max(at, start + 1_000)) }, { replace: true });
  const rest = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(rest.current), []);
  const show = (at: number, isDragging: boolean) => {
    clearTimeout(rest.current);
    setDragged(isDragging ? at : undefined);
    // Otherwise every panel would read each moment on the way, and delay the chosen one.
    if (isDragging) rest.current = setTimeout(() => choose(at), REST_MS);
    else choose(at);
  };
  const markOf = (name: string) => timeOfMoment(query.get(name) ?? undefined);
  const marks = { from: markOf('from'), to: markOf('to') };
  const here = () => utc(Math.max(start + 1_000, Math.min(shown, Date.now())));
  const at = dragged ?? chosen;
  const isPast = dragged === undefined ? moment !== undefined : !isNow(dragged);
  const said = isPast ? `As of ${at === undefined ? `position ${moment}` : fullTime(at)}` : 'Now';
  return (
    <section class="register" aria-label="Register">
      <div class="said">
        <strong>{said}</strong>
        {moment !== undefined && dragged === undefined && there.position !== undefined && (
          <span class="dim">position {count(there.position)}</span>
        )}
        {moment !== undefined && there.error && <span class="bad">{there.error.message}</span>}
        <GoTo />
      </div>
      <StripView
        strip={strip}
        title={strip.isWhole ? 'Drag to see the past' : 'Your activities; drag to see the past'}
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
        {isAdmin && (
          <a class={query.get('from') && query.get('to') ? '' : 'reserved'} href={urlOf('/log/diff')}>
            Difference
          </a>
        )}
        <button
          type="button"
          class="verify"
          title="Check that the log was not altered"
          onClick={() => setVerifying(true)}
        >
          Verify
        </button>
        {/* Always in its place: a strip that shrinks as the past is entered leaves the hand beside the pointer. */}
        <button
          type="button"
          class={moment === undefined ? 'main reserved' : 'main'}
          onClick={() => setParams({ at: undefined })}
        >
          Now
        </button>
      </div>
      {verifying && (
        <Dialog title="Was the log altered?" close={() => setVerifying(false)}>
          <Verdict startsAtOnce />
        </Dialog>
      )}
    </section>
  );
}
