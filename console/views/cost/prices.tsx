/** Prices of models. */
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { FormButton, write } from '../../parts/act.tsx';
import { Empty, Panel, Seconds, Shown, Table } from '../../parts/basic.tsx';
import { money } from '../../parts/format.ts';

/** Sets the price of a model, so that later reports are not priced by default. */
export function SetPrice({ model, text = 'Set a price' }: { readonly model?: string; readonly text?: string }) {
  const { isOperator } = useRights();
  if (!isOperator) return null;
  return (
    <FormButton
      text={text}
      title={model === undefined ? 'Set a price' : `Set the price of ${model}`}
      submit="Set"
      fields={[
        { name: 'model', label: 'Model', required: true, value: model ?? null },
        { name: 'input', label: 'Input', type: 'number', required: true, min: 0 },
        { name: 'output', label: 'Output', type: 'number', required: true, min: 0 },
        {
          name: 'cache_read',
          label: 'Input read from a cache',
          type: 'number',
          min: 0,
          hint: 'If omitted: a tenth of the input price.',
        },
        {
          name: 'cache_write',
          label: 'Input written to a cache',
          type: 'number',
          min: 0,
          hint: 'If omitted: 1.25 times the input price.',
        },
      ]}
      send={(body) => write('PUT /api/tokens/prices', { body }, 'The price applies to reports from now on.')}
    />
  );
}

/** Marks a cost that is an estimate because no price matches the model, and offers to set one. */
export const Estimated = ({ model }: { readonly model: string }) => (
  <>
    {' '}
    <span class="badge" title="No price matches this model, so its cost is an estimate.">
      default price
    </span>{' '}
    <SetPrice model={model} />
  </>
);

export function Prices() {
  const read = useRead('GET /api/tokens/prices', {});
  return (
    <Panel title="Prices, US dollars for a million tokens" class="wide" read={read} more={<SetPrice />}>
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
                { name: 'Cache read', of: (one) => money(one.cache_read), class: 'number' },
                { name: 'Cache write', of: (one) => money(one.cache_write), class: 'number' },
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
