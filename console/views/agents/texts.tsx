/** Persona, working memory and configuration of an agent. */
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { Act, ChangeButton, write } from '../../parts/act.tsx';
import { Empty, Panel, Shown } from '../../parts/basic.tsx';
import { Json } from '../../parts/drawer.tsx';

export function Texts({ id, config }: { readonly id: number; readonly config: unknown }) {
  const { isOperator } = useRights();
  const soul = useRead('GET /api/agents/{id}/soul', { params: { id } }, { kinds: ['agent.'] });
  const memory = useRead('GET /api/agents/{id}/memory', { params: { id } }, { kinds: ['agent.'] });
  return (
    <div class="grid">
      <Panel
        title="Persona"
        read={soul}
        more={
          isOperator &&
          soul.data && (
            <ChangeButton
              title="Persona"
              fields={[
                { name: 'soul_content', label: 'Persona', type: 'area', value: soul.data.soul_content, emptied: '' },
              ]}
              send={(body) => write('PUT /api/agents/{id}/soul', { params: { id }, body })}
            />
          )
        }
      >
        <Shown read={soul}>
          {({ soul_content }) =>
            soul_content ? <pre class="text">{soul_content}</pre> : <Empty>No persona is set.</Empty>
          }
        </Shown>
      </Panel>
      <Panel
        title="Working memory"
        read={memory}
        more={
          isOperator && (
            <Act
              danger
              confirm="The working memory becomes empty. What was in it stays in the past."
              act={() => write('DELETE /api/agents/{id}/memory', { params: { id } }, 'The memory is empty.')}
            >
              Empty
            </Act>
          )
        }
      >
        <Shown read={memory}>
          {({ working_memory }) =>
            working_memory ? <pre class="text">{working_memory}</pre> : <Empty>The working memory is empty.</Empty>
          }
        </Shown>
      </Panel>
      <Panel title="Configuration" class="wide">
        <Json value={config} />
      </Panel>
    </div>
  );
}
