/** The log itself: its events, what differs between two moments, and whether it was altered. */
import { useState } from 'preact/hooks';
import { setParams, urlOf, urlWith, useAddress } from '../client/address.ts';
import type { RecordChange } from '../client/api-types.ts';
import { background } from '../client/background.ts';
import { CallError, call } from '../client/client.ts';
import {
  type Checkpoint,
  continues,
  fromBase64,
  isIncluded,
  leafOf,
  openCheckpoint,
  toBase64,
} from '../client/proof.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Choice, Empty, Filter, Page, Panel, Seconds, Shown, State, Table, Tabs } from '../parts/basic.tsx';
import { openUrl } from '../parts/drawer.tsx';
import { count, json, time, typeInWords, words } from '../parts/format.ts';

const PAGE = 100;

export function Log({ view }: { readonly view: string | undefined }) {
  const { isAdmin, ofDeployment } = useRights();
  const tabs = [ofDeployment && 'events', isAdmin && 'diff', 'verify'].filter((one): one is string => one !== false);
  const now = tabs.find((one) => one === view) ?? tabs[0];
  return (
    <Page title="Log" about="Every change is an event in an append-only log.">
      <Tabs
        label="Of the log"
        now={now ?? ''}
        tabs={tabs.map((one) => [
          one,
          { events: 'Events', diff: 'Difference', verify: 'Verify' }[one] ?? one,
          urlOf(one === tabs[0] ? '/log' : `/log/${one}`),
        ])}
      />
      {now === 'events' && <Events />}
      {now === 'diff' && <Difference />}
      {now === 'verify' && <Verify />}
    </Page>
  );
}

function Events() {
  const { query } = useAddress();
  const names = ['type', 'stream', 'actor', 'since', 'until'] as const;
  const values = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]));
  const after = query.get('after') ?? undefined;
  const read = useRead('GET /api/history/events', { query: { ...values, after, limit: PAGE } });
  const set = (name: string) => (value: string) => setParams({ [name]: value, after: undefined }, { replace: true });
  return (
    <>
      <div class="filters">
        <Filter label="Type" value={values.type ?? ''} set={set('type')} />
        <Filter label="Stream" value={values.stream ?? ''} set={set('stream')} />
        <Filter label="By" value={values.actor ?? ''} set={set('actor')} />
        <Filter label="Since" value={values.since ?? ''} set={set('since')} />
        <Filter label="Until" value={values.until ?? ''} set={set('until')} />
      </div>
      <Panel title="Events, oldest first" read={read}>
        <Shown read={read} rows={12}>
          {({ events, next_after }) => (
            <>
              <Table
                label="Events"
                rows={events}
                id={({ id }) => id}
                href={({ id }) => openUrl(`event:${id}`)}
                empty="No event is like that. Types are written as in the log, such as TaskCreated; times as 2026-01-31T12:00:00Z."
                columns={[
                  { name: 'Event', of: ({ type }) => typeInWords(type), class: 'grow' },
                  { name: 'Position', of: ({ position }) => count(position), class: 'number' },
                  { name: 'When', of: ({ at }) => <Seconds at={at} />, class: 'time' },
                  { name: 'By', of: ({ actor }) => actor.name },
                  { name: 'Stream', of: ({ stream }) => <span class="dim">{stream}</span> },
                ]}
              />
              <nav class="pager" aria-label="Pages">
                <button type="button" disabled={after === undefined} onClick={() => setParams({ after: undefined })}>
                  First
                </button>
                <button
                  type="button"
                  disabled={next_after === null}
                  onClick={() => setParams({ after: next_after ?? undefined })}
                >
                  Next
                </button>
              </nav>
            </>
          )}
        </Shown>
      </Panel>
    </>
  );
}

const RESOURCES = [
  'agents',
  'agent_texts',
  'tasks',
  'comments',
  'projects',
  'workflows',
  'pipelines',
  'alerts',
  'webhooks',
  'users',
] as const;

function Difference() {
  const { query } = useAddress();
  const [from, to] = [query.get('from'), query.get('to')];
  const resource = query.get('resource') ?? undefined;
  const [first, second] = from && to && Date.parse(from) > Date.parse(to) ? [to, from] : [from, to];
  const read = useRead(
    'GET /api/history/diff',
    first && second
      ? { query: { from: first, to: second, resource, cursor: query.get('cursor') ?? undefined, limit: PAGE } }
      : undefined,
  );
  if (!first || !second)
    return (
      <Empty>
        <p>
          <strong>Two marks give a difference.</strong>
        </p>
        <p>On the register below, choose a moment and press Mark 1; choose another one and press Mark 2.</p>
      </Empty>
    );
  return (
    <>
      <div class="filters">
        <Choice
          label="Records"
          value={resource ?? ''}
          options={[['', 'all'], ...RESOURCES]}
          set={(value) => setParams({ resource: value, cursor: undefined }, { replace: true })}
        />
        <a href={urlWith({ at: first })}>See the first moment</a>
        <a href={urlWith({ at: second })}>See the second</a>
        <a href={urlWith({ from: undefined, to: undefined })}>Remove the marks</a>
      </div>
      <Panel title={`From ${time(Date.parse(first))} to ${time(Date.parse(second))}`} read={read}>
        <Shown read={read} rows={8}>
          {({ changes, from: a, to: b, next_cursor }) => (
            <>
              <p class="dim">
                Positions {count(a)} to {count(b)}
              </p>
              {changes.length === 0 ? (
                <Empty>Nothing differs.</Empty>
              ) : (
                changes.map((one) => <ChangeOf key={`${one.resource} ${one.id}`} change={one} />)
              )}
              {next_cursor && (
                <nav class="pager" aria-label="Pages">
                  <button type="button" onClick={() => setParams({ cursor: next_cursor })}>
                    Next
                  </button>
                </nav>
              )}
            </>
          )}
        </Shown>
      </Panel>
    </>
  );
}

const recordUrl = ({ resource, id }: RecordChange): string | undefined =>
  resource === 'agents' || resource === 'agent_texts'
    ? urlOf(`/agents/${id}`)
    : resource === 'tasks'
      ? urlOf(`/tasks/${id}`)
      : undefined;

const valueText = (value: unknown): string =>
  value === null || value === undefined ? '–' : typeof value === 'string' ? value : json(value);

function ChangeOf({ change }: { readonly change: RecordChange }) {
  const { ofDeployment } = useRights();
  const url = recordUrl(change);
  const name = `${words(change.resource)} ${change.id}`;
  return (
    <details class="change" open={change.change === 'changed'}>
      <summary>
        <State is={change.change} tone={{ added: 'good', removed: 'bad', changed: 'busy' }[change.change] as 'good'} />{' '}
        {url ? <a href={url}>{name}</a> : name}
        {ofDeployment &&
          change.events.slice(-3).map((id, at) => (
            <a key={id} class="why" href={openUrl(`event:${id}`)}>
              event {at + 1}
            </a>
          ))}
      </summary>
      <table>
        <tbody>
          {Object.entries(change.fields as Readonly<Record<string, { before?: unknown; after?: unknown }>>).map(
            ([field, { before, after }]) => (
              <tr key={field}>
                <th scope="row">{words(field)}</th>
                <td>
                  <del>{valueText(before)}</del>
                </td>
                <td>
                  <ins>{valueText(after)}</ins>
                </td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </details>
  );
}

interface Kept {
  readonly origin: string;
  readonly size: number;
  readonly root: string;
  readonly key: string;
  /** Unix milliseconds. */
  readonly at: number;
}
/** The last checkpoint that this browser has checked; it holds no secret. */
const KEPT = 'signalbox-checkpoint';
function keptCheckpoint(): Kept | undefined {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

interface Step {
  readonly good: boolean;
  readonly text: string;
}

async function verifyLog(mayProve: boolean, eventId: string | undefined): Promise<Step[]> {
  const steps: Step[] = [];
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
    steps.push({
      good: true,
      text: `The checkpoint over ${count(checkpoint.size)} events is signed by the key of the log.`,
    });
  } catch (error) {
    return [{ good: false, text: (error as Error).message }];
  }
  const kept = keptCheckpoint();
  if (kept && kept.key.trim() !== key.trim()) {
    steps.push({
      good: false,
      text: `The key is another one than on ${time(kept.at)}. Ask the operator why it was replaced.`,
    });
  } else if (kept && kept.origin !== checkpoint.origin) {
    steps.push({
      good: false,
      text: `The log is called ${checkpoint.origin} now, and was ${kept.origin} on ${time(kept.at)}: it was restored or replaced.`,
    });
  } else if (kept && mayProve) {
    const first = { origin: kept.origin, size: kept.size, root: fromBase64(kept.root) };
    const path =
      kept.size < checkpoint.size
        ? (await call('GET /api/history/consistency', { query: { from: kept.size, to: checkpoint.size } })).data.path
        : [];
    const good = await continues(first, checkpoint, path);
    steps.push({
      good,
      text: good
        ? `It continues the log that this browser saw on ${time(kept.at)}: nothing in its ${count(kept.size)} events was altered.`
        : `It does not continue the log of ${count(kept.size)} events that this browser saw on ${time(kept.at)}: events were altered or removed. Run \`signalbox verify\`.`,
    });
  } else if (!kept) {
    steps.push({
      good: true,
      text: 'This browser keeps the checkpoint. The next check here shows that nothing under it was altered.',
    });
  }
  if (eventId !== undefined && mayProve) {
    const { data: event } = await call('GET /api/history/events/{id}', { params: { id: eventId } });
    try {
      const { data: proof } = await call('GET /api/history/proof', {
        query: { event: eventId, size: checkpoint.size },
      });
      const good = await isIncluded(await leafOf(event), proof.index, proof.path, checkpoint);
      steps.push({
        good,
        text: good
          ? `"${typeInWords(event.type)}" is event ${count(proof.index)} under this checkpoint, exactly as it is shown.`
          : `"${typeInWords(event.type)}" is not what the checkpoint was signed for.`,
      });
    } catch (error) {
      if (!(error instanceof CallError) || error.status !== 400) throw error;
      steps.push({
        good: true,
        text: 'The event is newer than the latest checkpoint, which is signed at most every 30 seconds. Check again then.',
      });
    }
  }
  if (steps.every(({ good }) => good)) {
    const { origin, size, root } = checkpoint;
    localStorage.setItem(
      KEPT,
      JSON.stringify({ origin, size, root: toBase64(root), key, at: Date.now() } satisfies Kept),
    );
  }
  return steps;
}

function Verify() {
  const { query } = useAddress();
  const { ofDeployment } = useRights();
  const event = query.get('event') ?? undefined;
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
  const kept = keptCheckpoint();
  const isWhole = steps?.every(({ good }) => good);
  return (
    <Panel title="Was the log altered?">
      <p>
        The service signs a tree over all events. This page checks the signature, and that the log continues the one
        that this browser saw before
        {event ? ', and that the chosen event is in it' : ''}. It does so by itself, without trusting the service.
      </p>
      {kept && (
        <p class="dim">
          Kept in this browser: {count(kept.size)} events of {kept.origin}, checked {time(kept.at)}
        </p>
      )}
      <button type="button" class="main" disabled={busy} aria-busy={busy} onClick={() => background(run())}>
        {busy ? 'Checking …' : 'Verify'}
      </button>
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
        {error && (
          <p class="failure" role="alert">
            {error.message}
          </p>
        )}
      </div>
      <p class="dim">
        Auditors verify the whole log, event by event, with <code>signalbox export-events --signed</code> and{' '}
        <code>signalbox verify</code>.
      </p>
    </Panel>
  );
}
