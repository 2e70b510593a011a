/** One task: record, reviews, history, comments. */
import { useState } from 'preact/hooks';
import { go, urlOf } from '../../client/address.ts';
import type { Comment, HistoryEntry, QualityReview } from '../../client/api-types.ts';
import { useAsOf } from '../../client/moment.ts';
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { Act, ChangeButton, Form, FormButton, say, write } from '../../parts/act.tsx';
import { AgentLink, Empty, Fact, Page, Panel, Seconds, Shown, State } from '../../parts/basic.tsx';
import { openUrl } from '../../parts/drawer.tsx';
import { json, words } from '../../parts/format.ts';
import { PRIORITIES, STATES } from './tasks.tsx';

export function TaskView({ id }: { readonly id: string }) {
  const { isOperator, isAdmin } = useRights();
  const read = useRead(
    'GET /api/tasks/{id}',
    { params: { id }, query: { include: 'history', history_limit: 100 } },
    { kinds: ['task.'] },
  );
  const comments = useRead('GET /api/tasks/{id}/comments', { params: { id } }, { kinds: ['task.', 'activity.'] });
  const reviews = useRead('GET /api/quality-review', { query: { taskId: id } }, { kinds: ['task.', 'activity.'] });
  const task = read.data?.task;
  return (
    <Page
      title={task?.title ?? `Task ${id}`}
      about={
        task && (
          <>
            {task.ticket_ref} <State is={task.status} /> <State is={task.priority} />
          </>
        )
      }
      more={
        task &&
        isOperator && (
          <>
            <ChangeButton
              title="Change the task"
              fields={[
                { name: 'title', label: 'Title', value: task.title, required: true },
                { name: 'description', label: 'Description', type: 'area', value: task.description, emptied: '' },
                {
                  name: 'status',
                  label: 'Status',
                  value: task.status,
                  options: STATES,
                  required: true,
                  hint: 'Done only after an approving review.',
                },
                { name: 'priority', label: 'Priority', value: task.priority, options: PRIORITIES, required: true },
                {
                  name: 'assigned_to',
                  label: 'Agent',
                  value: task.assigned_to,
                  emptied: '',
                  hint: 'Empty: any agent may take it from the queue.',
                },
              ]}
              send={(body) => write('PUT /api/tasks/{id}', { params: { id }, body })}
            />
            <FormButton
              text="Review"
              title="Review the task"
              submit="Record"
              fields={[
                {
                  name: 'status',
                  label: 'Verdict',
                  value: 'approved',
                  options: ['approved', 'rejected'],
                  required: true,
                  hint: isAdmin
                    ? 'Your approval makes the task done.'
                    : 'Your approval is kept and shown. Only an admin’s makes the task done.',
                },
                { name: 'notes', label: 'Notes', type: 'area', required: true },
              ]}
              send={async (body) => {
                const { message } = await write('POST /api/quality-review', { body: { ...body, taskId: Number(id) } });
                say(message ?? 'The review is recorded.');
              }}
            />
            <Act
              danger
              confirm="The task is removed from the lists. Its history stays in the log."
              act={async () => {
                await write('DELETE /api/tasks/{id}', { params: { id } }, 'The task is deleted.');
                go(urlOf('/tasks'));
              }}
            >
              Delete
            </Act>
          </>
        )
      }
    >
      <div class="grid">
        <Panel title="Record" read={read}>
          <Shown read={read}>
            {({ task: one }) => (
              <>
                {one.description && <p class="text">{one.description}</p>}
                <dl class="facts">
                  <Fact name="Agent">
                    <AgentLink name={one.assigned_to} />
                  </Fact>
                  <Fact name="Project">{one.project_name ?? '–'}</Fact>
                  <Fact name="Created">
                    <Seconds at={one.created_at} /> by {one.created_by}
                  </Fact>
                  <Fact name="Changed">
                    <Seconds at={one.updated_at} />
                  </Fact>
                  <Fact name="Due">
                    <Seconds at={one.due_date} none="not set" />
                  </Fact>
                  <Fact name="Done">
                    <Seconds at={one.completed_at} none="not yet" />
                  </Fact>
                  {one.tags.length > 0 && <Fact name="Tags">{one.tags.join(', ')}</Fact>}
                  {one.error_message && <Fact name="Error">{one.error_message}</Fact>}
                  {one.outcome && <Fact name="Outcome">{one.outcome}</Fact>}
                </dl>
              </>
            )}
          </Shown>
        </Panel>
        <Panel title="Reviews" read={reviews}>
          <Shown read={reviews}>
            {(data) =>
              'reviews' in data && data.reviews.length > 0 ? (
                <ul class="lines">
                  {data.reviews.map((one) => (
                    <li key={one.id}>
                      <State is={one.status} /> by <Reviewer of={one} /> <Seconds at={one.created_at} />
                      <p class="text">{one.notes}</p>
                    </li>
                  ))}
                </ul>
              ) : (
                <Empty>No reviews yet.</Empty>
              )
            }
          </Shown>
        </Panel>
        <Panel title="History" class="wide" read={read}>
          <Shown read={read}>{({ history = [] }) => <History of={history} />}</Shown>
        </Panel>
        <Panel title="Comments" class="wide" read={comments}>
          <Shown read={comments}>
            {(data) => (data.comments.length > 0 ? <Threads of={data.comments} /> : <Empty>No comments yet.</Empty>)}
          </Shown>
          {isOperator && <NewComment id={id} />}
        </Panel>
      </div>
    </Page>
  );
}

/** The person or agent, with the name under which they reviewed. */
const Reviewer = ({ of }: { readonly of: Pick<QualityReview, 'reviewer' | 'reviewed_by'> }) => (
  <>
    <strong>{of.reviewed_by.name}</strong>
    {of.reviewed_by.name !== of.reviewer && <span class="dim"> for {of.reviewer}</span>}
  </>
);

/** Each event of a task: its actor, its cause, and its changes. */
function History({ of }: { readonly of: readonly HistoryEntry[] }) {
  const { ofDeployment } = useRights();
  if (of.length === 0) return <Empty>No events yet.</Empty>;
  return (
    <ol class="history">
      {of.map((one) => (
        <li key={`${one.position} ${one.revision}`}>
          <span class="time">
            <Seconds at={one.at} />
          </span>
          <div>
            {ofDeployment ? <a href={openUrl(`position:${one.position}`)}>{one.description}</a> : one.description}{' '}
            <span class="dim">
              by {one.reviewed_by ? <Reviewer of={{ reviewer: one.actor, reviewed_by: one.reviewed_by }} /> : one.actor}
            </span>
            {one.reason && <p class="text">{one.reason}</p>}
            {Object.keys(one.changes).length > 0 && (
              <details>
                <summary>{Object.keys(one.changes).map(words).join(', ')}</summary>
                <pre class="json" tabIndex={0}>
                  {json(one.changes)}
                </pre>
              </details>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}

const Threads = ({ of }: { readonly of: readonly Comment[] }) => (
  <ul class="threads">
    {of.map((one) => (
      <li key={one.id}>
        <strong>{one.author}</strong> <Seconds at={one.created_at} />
        <p class="text">{one.content}</p>
        {one.replies.length > 0 && <Threads of={one.replies} />}
      </li>
    ))}
  </ul>
);

function NewComment({ id }: { readonly id: string }) {
  const isPast = useAsOf() !== undefined;
  const [sent, setSent] = useState(0);
  if (isPast) return null;
  return (
    <Form
      key={sent}
      submit="Comment"
      fields={[
        { name: 'content', label: 'Comment', type: 'area', required: true, hint: '@name notifies a user or an agent.' },
      ]}
      send={async (body) => {
        await write('POST /api/tasks/{id}/comments', { params: { id }, body });
        setSent(sent + 1);
      }}
    />
  );
}
