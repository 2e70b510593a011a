/** Conversations of people and agents. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { urlOf } from '../client/address.ts';
import { useAsOf } from '../client/moment.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Form, FormButton, write } from '../parts/act.tsx';
import { Empty, Page, Panel, Seconds, Shown } from '../parts/basic.tsx';

export function Chat({ id }: { readonly id: string | undefined }) {
  const { isOperator } = useRights();
  const read = useRead('GET /api/chat/conversations', { query: { limit: 100 } }, { kinds: ['chat.'] });
  // The newest conversation, if the URL names none.
  const newest = read.data?.conversations[0];
  const shown = id ?? (newest && String(newest.id));
  return (
    <Page
      title="Chat"
      more={
        isOperator && (
          <FormButton
            main
            text="New message"
            title="New message"
            submit="Send"
            fields={[
              { name: 'to', label: 'To', required: true, hint: 'The name of an agent or a user' },
              { name: 'content', label: 'Message', type: 'area', required: true },
            ]}
            send={(body) => write('POST /api/chat/messages', { body }, 'Sent.')}
          />
        )
      }
    >
      <div class="grid chat">
        <Panel title="Conversations" read={read}>
          <Shown read={read}>
            {({ conversations }) =>
              conversations.length === 0 ? (
                <Empty>No messages yet.</Empty>
              ) : (
                <ul class="conversations">
                  {conversations.map((one) => (
                    <li key={one.id}>
                      <a href={urlOf(`/chat/${one.id}`)} aria-current={String(one.id) === shown ? 'page' : undefined}>
                        <strong>{one.participants.join(', ')}</strong>
                        {one.unread_count > 0 && <span class="badge">{one.unread_count} unread</span>}
                        <span class="dim">{one.last_message}</span>
                        <Seconds at={one.last_message_at} />
                      </a>
                    </li>
                  ))}
                </ul>
              )
            }
          </Shown>
        </Panel>
        {shown === undefined ? (
          <Panel title="Messages">
            <Empty>Choose a conversation.</Empty>
          </Panel>
        ) : (
          <Messages key={shown} id={shown} />
        )}
      </div>
    </Page>
  );
}

const PAGE = 100;

function Messages({ id }: { readonly id: string }) {
  const { isOperator, me } = useRights();
  const isPast = useAsOf() !== undefined;
  const count = useRead('GET /api/chat/messages', { query: { conversation_id: id, limit: 1 } }, { kinds: ['chat.'] });
  const total = count.data?.total;
  const [sent, setSent] = useState(0);
  const end = useRef<HTMLLIElement>(null);
  const read = useRead(
    'GET /api/chat/messages',
    total === undefined
      ? undefined
      : { query: { conversation_id: id, limit: PAGE, offset: Math.max(0, total - PAGE) } },
    { kinds: ['chat.'] },
  );
  const shown = read.data?.messages.length ?? 0;
  useEffect(() => end.current?.scrollIntoView({ block: 'nearest' }), [shown]);
  return (
    <Panel title="Messages" read={read}>
      <Shown read={read}>
        {({ messages }) => (
          <>
            {total !== undefined && total > PAGE && (
              <p class="dim">
                The newest {PAGE} of {total}.
              </p>
            )}
            <ul class="messages" tabIndex={0} aria-label="Messages">
              {messages.map((one) => (
                <li key={one.id} class={one.sender === me.username ? 'own' : ''}>
                  <strong>{one.sender}</strong> <Seconds at={one.created_at} />
                  <p class="text">{one.content}</p>
                </li>
              ))}
              <li ref={end} class="end" />
            </ul>
          </>
        )}
      </Shown>
      {isOperator && !isPast && (
        <Form
          key={sent}
          submit="Send"
          fields={[{ name: 'content', label: 'Message', type: 'area', required: true }]}
          send={async (body) => {
            await write('POST /api/chat/messages', { body: { ...body, conversation_id: Number(id) } });
            setSent(sent + 1);
          }}
        />
      )}
    </Panel>
  );
}
