/** Webhooks: their URLs, each delivery, tests and retries. */
import { useState } from 'preact/hooks';
import { setParams, urlWith, useAddress } from '../client/address.ts';
import type { Webhook } from '../client/api-types.ts';
import { call } from '../client/client.ts';
import { refreshAll, useRead } from '../client/reads.ts';
import { Act, Dialog, FormButton, say, type Values, write } from '../parts/act.tsx';
import { Copy, Page, Pager, Panel, Seconds, Shown, State, Table } from '../parts/basic.tsx';
import { count, typeInWords } from '../parts/format.ts';
import { recordUrl } from '../parts/record.tsx';

const PAGE = 50;
/** No frame says that a delivery was made or has failed. */
const EVERY_MS = 5_000;
const listOf = (text: unknown): string[] =>
  String(text ?? '')
    .split(/[\s,]+/)
    .filter(Boolean);

/** Sends a delivery and reports the result. */
async function deliver(name: 'POST /api/webhooks/test' | 'POST /api/webhooks/retry', body: Values): Promise<void> {
  const { data } = await call(name, { body });
  refreshAll();
  say(
    data.success
      ? `Delivered: ${data.status_code} after ${data.duration_ms} ms.`
      : `Not delivered: ${data.error ?? `the receiver responded ${data.status_code}`}.`,
  );
}

export function Webhooks() {
  const { query } = useAddress();
  const read = useRead('GET /api/webhooks', {}, { every: EVERY_MS });
  const [secret, setSecret] = useState<string>();
  const chosen = query.get('id');
  return (
    <Page
      title="Webhooks"
      more={
        <FormButton
          main
          text="New webhook"
          title="New webhook"
          submit="Create"
          fields={[
            { name: 'name', label: 'Name', required: true },
            { name: 'url', label: 'URL', type: 'url', required: true },
            {
              name: 'events',
              label: 'Event types',
              hint: 'Separated by commas, such as activity.task_status_changed, alert.triggered. Empty: all.',
            },
          ]}
          send={async ({ name, url, events }) => {
            const list = listOf(events);
            const made = await write('POST /api/webhooks', {
              body: { name, url, ...(list.length > 0 && { events: list }), generate_secret: true },
            });
            if (made.secret) setSecret(made.secret);
          }}
        />
      }
    >
      {secret && (
        <Dialog title="The secret of the webhook" close={() => setSecret(undefined)}>
          <p>Receivers verify signatures with it. It is shown only now.</p>
          <pre tabIndex={0}>{secret}</pre>
          <div class="buttons">
            <Copy text={secret} label="Copy" />
          </div>
        </Dialog>
      )}
      <Panel title="Webhooks" read={read}>
        <Shown read={read}>
          {({ webhooks }) => (
            <Table
              label="Webhooks"
              rows={webhooks}
              id={(one) => one.id}
              empty="There are no webhooks yet. A webhook sends events to a URL."
              href={(one) => recordUrl('webhook', one.id)}
              columns={[
                { name: 'Name', of: (one) => <strong>{one.name}</strong> },
                { name: 'URL', of: (one) => <span class="break">{one.url}</span>, class: 'grow' },
                { name: 'State', of: (one) => <WebhookState of={one} /> },
                {
                  name: 'Delivered',
                  of: (one) =>
                    one.total_deliveries === undefined
                      ? '–'
                      : `${count(one.successful_deliveries ?? 0)} of ${count(one.total_deliveries)}`,
                  class: 'number',
                },
                { name: 'Last', of: (one) => <Seconds at={one.last_fired_at} none="never" />, class: 'time' },
                {
                  name: 'Actions',
                  of: (one) => (
                    <span class="buttons">
                      <a href={urlWith({ id: one.id, offset: undefined })}>Deliveries</a>
                      <Act act={() => deliver('POST /api/webhooks/test', { id: one.id })}>Test</Act>
                      <Act act={() => write('PUT /api/webhooks', { body: { id: one.id, enabled: !one.enabled } })}>
                        {one.enabled ? 'Switch off' : 'Switch on'}
                      </Act>
                      {one.circuit_open && (
                        <Act
                          act={() =>
                            write(
                              'PUT /api/webhooks',
                              { body: { id: one.id, reset_circuit: true } },
                              'The circuit is closed: deliveries resume.',
                            )
                          }
                        >
                          Close the circuit
                        </Act>
                      )}
                      <Act
                        danger
                        confirm={`The webhook "${one.name}" and its deliveries are deleted.`}
                        act={() => write('DELETE /api/webhooks', { body: { id: one.id } }, 'Deleted.')}
                      >
                        Delete
                      </Act>
                    </span>
                  ),
                },
              ]}
            />
          )}
        </Shown>
      </Panel>
      <Deliveries webhook={chosen} />
    </Page>
  );
}

function WebhookState({ of }: { readonly of: Webhook }) {
  if (of.circuit_open) return <State is="circuit" tone="bad" text="circuit open" />;
  if (!of.enabled) return <State is="off" tone="none" />;
  if ((of.consecutive_failures ?? 0) > 0)
    return <State is="failing" tone="warn" text={`${of.consecutive_failures} failed in a row`} />;
  return <State is="on" tone="good" />;
}

function Deliveries({ webhook }: { readonly webhook: string | null }) {
  const { query } = useAddress();
  const offset = Number(query.get('offset') ?? 0);
  const read = useRead(
    'GET /api/webhooks/deliveries',
    { query: { webhook_id: webhook ?? undefined, limit: PAGE, offset } },
    { every: EVERY_MS },
  );
  return (
    <Panel
      title={webhook ? `Deliveries of webhook ${webhook}` : 'Deliveries'}
      read={read}
      more={webhook && <a href={urlWith({ id: undefined, offset: undefined })}>Of all webhooks</a>}
    >
      <Shown read={read}>
        {({ deliveries, total }) => (
          <>
            <Table
              label="Deliveries"
              rows={deliveries}
              id={(one) => one.id}
              href={(one) => recordUrl('delivery', one.id)}
              empty="Nothing has been delivered yet. Test a webhook to see one."
              columns={[
                { name: 'Event', of: (one) => typeInWords(one.event_type) },
                { name: 'When', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
                { name: 'Webhook', of: (one) => one.webhook_name },
                {
                  name: 'Result',
                  of: (one) => {
                    const good = one.status_code !== null && one.status_code >= 200 && one.status_code < 300;
                    return (
                      <State
                        is="result"
                        tone={good ? 'good' : 'bad'}
                        text={one.status_code === null ? 'no response' : String(one.status_code)}
                      />
                    );
                  },
                },
                { name: 'Took', of: (one) => `${one.duration_ms} ms`, class: 'number' },
                { name: 'Attempt', of: (one) => one.attempt + 1, class: 'number' },
                { name: 'Next', of: (one) => <Seconds at={one.next_retry_at} none="–" />, class: 'time' },
                {
                  name: 'Action',
                  of: (one) => (
                    <span class="buttons">
                      <Act act={() => deliver('POST /api/webhooks/retry', { delivery_id: one.id })}>Send again</Act>
                    </span>
                  ),
                },
              ]}
            />
            <Pager offset={offset} limit={PAGE} total={total} set={(to) => setParams({ offset: to || undefined })} />
          </>
        )}
      </Shown>
    </Panel>
  );
}
