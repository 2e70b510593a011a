/** One agent: its parts as tabs, and its actions. */
import { go, urlOf, urlWith, useAddress } from '../../client/address.ts';
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { Act, ChangeButton, FormButton, write } from '../../parts/act.tsx';
import { Page, Shown, State, Tabs } from '../../parts/basic.tsx';
import { AgentCost } from '../cost/agent.tsx';
import { STATES } from './agents.tsx';
import { Attribution } from './attribution.tsx';
import { Diagnostics } from './diagnostics.tsx';
import { AgentKeys } from './keys.tsx';
import { Texts } from './texts.tsx';

const TABS = ['diagnostics', 'cost', 'attribution', 'texts', 'keys'] as const;

export function AgentView({ id }: { readonly id: string }) {
  const { query } = useAddress();
  const { isOperator, isAdmin, me } = useRights();
  const read = useRead('GET /api/agents/{id}', { params: { id } }, { kinds: ['agent.'] });
  const agent = read.data?.agent;
  const tabs = TABS.filter(
    (one) => isAdmin || (one !== 'keys' && (one !== 'attribution' || agent?.name === me.username)),
  );
  const tab = tabs.find((one) => one === query.get('tab')) ?? 'diagnostics';
  return (
    <Page
      title={agent?.name ?? `Agent ${id}`}
      about={
        agent && (
          <>
            <State is={agent.status} /> · {agent.role}
            {agent.last_activity && ` · ${agent.last_activity}`}
          </>
        )
      }
      more={
        agent && (
          <>
            {isOperator && (
              <>
                <Act
                  act={() =>
                    write(
                      'POST /api/agents/{id}/wake',
                      { params: { id: agent.id }, body: {} },
                      `${agent.name} is asked to look at its tasks.`,
                    )
                  }
                >
                  Notify
                </Act>
                <FormButton
                  text="Message"
                  title={`Message to ${agent.name}`}
                  submit="Send"
                  fields={[{ name: 'content', label: 'Message', type: 'area', required: true }]}
                  send={(values) =>
                    write(
                      'POST /api/agents/message',
                      { body: { ...values, from: me.username, to: agent.name } },
                      'Sent.',
                    )
                  }
                />
                <ChangeButton
                  title={`Change ${agent.name}`}
                  fields={[
                    { name: 'role', label: 'Role', value: agent.role, required: true },
                    { name: 'status', label: 'Status', value: agent.status, options: STATES, required: true },
                  ]}
                  send={(body) => write('PUT /api/agents/{id}', { params: { id: agent.id }, body })}
                />
              </>
            )}
            {isAdmin && (
              <Act
                danger
                confirm={`${agent.name} is removed from the lists, and its keys stop working. What it did stays in the log.`}
                act={async () => {
                  await write('DELETE /api/agents/{id}', { params: { id: agent.id } }, `${agent.name} is deleted.`);
                  go(urlOf('/agents'));
                }}
              >
                Delete
              </Act>
            )}
          </>
        )
      }
    >
      <Shown read={read}>
        {({ agent: one }) => (
          <>
            <Tabs
              label="Parts"
              now={tab}
              tabs={tabs.map((name) => [
                name,
                name === 'texts' ? 'persona and memory' : name,
                urlWith({ tab: name === 'diagnostics' ? undefined : name }),
              ])}
            />
            {tab === 'diagnostics' && <Diagnostics id={one.id} name={one.name} />}
            {tab === 'cost' && <AgentCost name={one.name} id={one.id} />}
            {tab === 'attribution' && <Attribution id={one.id} />}
            {tab === 'texts' && <Texts id={one.id} config={one.config} />}
            {tab === 'keys' && <AgentKeys id={one.id} />}
          </>
        )}
      </Shown>
    </Page>
  );
}
