/** Prices of models. */
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { FormButton, write } from '../../parts/act.tsx';
import { Empty, Panel, Seconds, Shown, Table } from '../../parts/basic.tsx';
import { money } from '../../parts/format.ts';

export function Prices() {
  const { isOperator } = useRights();
  const read = useRead('GET /api/tokens/prices', {});
  return (
    <Panel
      title="Prices, US dollars for a million tokens"
      class="wide"
      read={read}
      more={
        isOperator && (
          <FormButton
            text="Set a price"
            title="Set a price"
            submit="Set"
            fields={[
              { name: 'model', label: 'Model', required: true },
              { name: 'input', label: 'Input', type: 'number', required: true, min: 0 },
              { name: 'output', label: 'Output', type: 'number', required: true, min: 0 },
            ]}
            send={(body) => write('PUT /api/tokens/prices', { body }, 'The price applies to reports from now on.')}
          />
        )
      }
    >
      <Shown read={read}>
        {({ prices, subscribed_providers }) => (
          <>
            {subscribed_providers.length > 0 && (
              <p>Free of charge by subscription: {subscribed_providers.join(', ')}</p>
            )}
            <Table
              label="Prices"
              rows={prices}
              id={(one) => one.model}
              empty={<Empty>No prices.</Empty>}
              columns={[
                { name: 'Model', of: (one) => one.model },
                { name: 'Input', of: (one) => money(one.input), class: 'number' },
                { name: 'Output', of: (one) => money(one.output), class: 'number' },
                { name: 'From', of: (one) => one.source, class: 'time' },
                { name: 'Changed', of: (one) => <Seconds at={one.updated_at} />, class: 'time' },
              ]}
            />
          </>
        )}
      </Shown>
    </Panel>
  );
}
