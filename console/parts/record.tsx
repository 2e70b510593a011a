/** The drawer of a record without a view of its own: its fields, its events, and the request that read it. */
import { urlOf, urlWith } from '../client/address.ts';
import type { Asked, Call } from '../client/client.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Copy, curlOf, Empty, Fact, Seconds, Shown } from './basic.tsx';
import { Drawer, EventLink, Json } from './drawer.tsx';
import { money, utc, words } from './format.ts';

type Row = Readonly<Record<string, unknown>>;

interface Kind {
  readonly call: Call;
  readonly asked: (id: string) => Asked;
  /** Field of the response that contains the record, or a list with it. */
  readonly field: string;
  /** Stream of its events. */
  readonly stream?: (workspace: number, id: string) => string;
  readonly link?: (row: Row) => readonly [text: string, url: string] | undefined;
}

const newest = (): Asked => ({ query: { limit: 200 } });

const KINDS: Readonly<Record<string, Kind>> = {
  activity: {
    call: 'GET /api/activities',
    asked: newest,
    field: 'activities',
    link: ({ entity_type, entity_id }) =>
      entity_type === 'task' || entity_type === 'agent'
        ? [`Open the ${entity_type}`, urlOf(`/${entity_type}s/${entity_id}`)]
        : undefined,
  },
  audit: { call: 'GET /api/audit', asked: newest, field: 'entries' },
  alert: { call: 'GET /api/alerts', asked: () => ({}), field: 'rules', stream: (ws, id) => `alert-${ws}-${id}` },
  webhook: {
    call: 'GET /api/webhooks',
    asked: () => ({}),
    field: 'webhooks',
    stream: (ws, id) => `webhook-${ws}-${id}`,
    link: ({ id }) => ['Deliveries', urlOf('/webhooks', { id: String(id) })],
  },
  delivery: { call: 'GET /api/webhooks/deliveries', asked: () => ({ query: { limit: 200 } }), field: 'deliveries' },
  user: { call: 'GET /api/auth/users', asked: () => ({}), field: 'users', stream: (_, id) => `user-${id}` },
  workspace: { call: 'GET /api/workspaces', asked: () => ({}), field: 'workspaces' },
  tenant: { call: 'GET /api/super/tenants', asked: () => ({}), field: 'tenants', stream: (_, id) => `tenant-${id}` },
  job: { call: 'GET /api/super/provision-jobs', asked: () => ({ query: { limit: 200 } }), field: 'jobs' },
  gateway: { call: 'GET /api/gateways', asked: () => ({}), field: 'gateways' },
  project: {
    call: 'GET /api/projects',
    asked: () => ({}),
    field: 'projects',
    stream: (ws, id) => `project-${ws}-${id}`,
    link: ({ id }) => ['Tasks', urlOf('/tasks', { view: 'table', project_id: String(id) })],
  },
  pipeline: {
    call: 'GET /api/pipelines',
    asked: () => ({}),
    field: 'pipelines',
    stream: (ws, id) => `pipeline-${ws}-${id}`,
  },
  message: {
    call: 'GET /api/chat/messages/{id}',
    asked: (id) => ({ params: { id } }),
    field: 'message',
    link: ({ conversation_id }) => ['Open the conversation', urlOf(`/chat/${conversation_id}`)],
  },
};

export const hasRecord = (kind: string): boolean => kind in KINDS;

/** For `open`: the kind and id of a record; of activities and audit entries, the time as well. @param at Unix seconds */
export const recordUrl = (kind: string, id: number | string, at?: number): string =>
  urlWith({ open: `${kind}:${id}${at === undefined ? '' : `:${at}`}` });

/** Whether a field contains Unix seconds, judging by its name. */
export const isTime = (name: string, value: unknown): value is number =>
  /(_at|_seen|_date|_retry|_check)$/.test(name) && typeof value === 'number' && value > 1_000_000_000;
const isShort = (value: unknown): boolean =>
  value === null ||
  typeof value === 'boolean' ||
  typeof value === 'number' ||
  (typeof value === 'string' && value.length < 200);

function Value({ name, value }: { readonly name: string; readonly value: unknown }) {
  if (value === null || value === '') return <span class="dim">–</span>;
  if (isTime(name, value)) return <Seconds at={value} />;
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>;
  if (typeof value === 'number' && /cost|price/.test(name)) return <>{money(value)}</>;
  return <span class="break">{String(value)}</span>;
}

/** @param at Unix seconds; 0: not given */
export function RecordDrawer({ kind, id, at }: { readonly kind: string; readonly id: string; readonly at: number }) {
  const { me, ofDeployment } = useRights();
  const { call, asked, field, stream, link } = KINDS[kind] as Kind;
  // Reads the newest records as of the second of this record, so that it is among them however old it is.
  const read = useRead(call, asked(id), at > 0 ? { at: new Date(at * 1000 + 999).toISOString() } : {});
  return (
    <Drawer title={`${words(kind)[0]?.toUpperCase()}${words(kind).slice(1)} ${id}`}>
      <Shown read={read} rows={6}>
        {(data) => {
          const found = (data as Row)[field];
          const row = (Array.isArray(found) ? found.find((one: Row) => String(one.id) === id) : found) as
            | Row
            | undefined;
          if (!row) return <Empty>It is not in the list: it was deleted, or is older than what the list shows.</Empty>;
          const fields = Object.entries(row).filter(([name]) => name !== 'evidence');
          const leads = link?.(row);
          return (
            <>
              <dl class="facts">
                {fields
                  .filter(([, value]) => isShort(value))
                  .map(([name, value]) => (
                    <Fact key={name} name={words(name)}>
                      <Value name={name} value={value} />
                    </Fact>
                  ))}
              </dl>
              {fields
                .filter(([, value]) => !isShort(value))
                .map(([name, value]) => (
                  <details key={name}>
                    <summary>{words(name)}</summary>
                    {typeof value === 'string' ? <pre tabIndex={0}>{value}</pre> : <Json value={value} />}
                  </details>
                ))}
              {ofDeployment && stream && <EventsOf stream={stream(me.workspace_id, id)} />}
              {ofDeployment && at > 0 && <EventsAt at={at} />}
              <div class="buttons">
                {leads && <a href={leads[1]}>{leads[0]}</a>}
                <Copy text={curlOf(read.url)} label="Copy as curl" />
                <Copy text={JSON.stringify(row, null, 2)} label="Copy as JSON" />
              </div>
            </>
          );
        }}
      </Shown>
    </Drawer>
  );
}

function EventsOf({ stream }: { readonly stream: string }) {
  const read = useRead('GET /api/history/events', { query: { stream, limit: 200 } });
  return (
    <>
      <h3>History</h3>
      <Shown read={read}>
        {({ events }) =>
          events.length === 0 ? (
            <p class="dim">No events.</p>
          ) : (
            <ol class="causes">
              {[...events].reverse().map((event) => (
                <li key={event.id}>
                  <EventLink event={event} />
                </li>
              ))}
            </ol>
          )
        }
      </Shown>
    </>
  );
}

/** Events of that second; one of them created the record. @param at Unix seconds */
function EventsAt({ at }: { readonly at: number }) {
  const time = utc(at * 1000);
  const read = useRead('GET /api/history/events', { query: { since: String(at), until: String(at), limit: 20 } });
  return (
    <>
      <h3>Events of this second</h3>
      <Shown read={read}>
        {({ events, next_after }) => (
          <>
            <ol class="causes">
              {events.map((event) => (
                <li key={event.id}>
                  <EventLink event={event} />
                </li>
              ))}
            </ol>
            {next_after !== null && <a href={urlOf('/log', { since: time, until: time })}>All of them</a>}
          </>
        )}
      </Shown>
    </>
  );
}
