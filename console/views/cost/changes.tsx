/** What changed between two days: a table, and the sum. */
import { urlOf } from '../../client/address.ts';
import type { Read } from '../../client/reads.ts';
import { Failure, Shown, Table } from '../../parts/basic.tsx';
import { change, count, money, percent, short } from '../../parts/format.ts';
import { Estimated } from './prices.tsx';
import type { Change } from './spend.ts';

export function Changes({
  rows,
  label,
  name,
  areModels = false,
  href,
  empty,
}: {
  readonly rows: readonly Change[];
  readonly label: string;
  readonly name: string;
  /** The rows are models, so a price can be set for those that were priced by default. */
  readonly areModels?: boolean;
  readonly href?: (row: Change) => string;
  readonly empty: string;
}) {
  return (
    <Table
      label={label}
      rows={rows.slice(0, 50)}
      id={(row) => row.name}
      href={href}
      empty={empty}
      columns={[
        {
          name,
          of: (row) => (
            <>
              {row.name}
              {areModels && row.estimated > 0 && <Estimated model={row.name} />}
            </>
          ),
          class: 'grow',
        },
        { name: 'Change', of: (row) => <strong>{change(row.cost - row.before, money)}</strong>, class: 'number' },
        { name: 'Day', of: (row) => money(row.cost), class: 'number' },
        {
          name: 'Estimated',
          of: (row) => (row.estimated > 0 ? percent((100 * row.estimated) / row.cost) : '–'),
          class: 'number',
        },
        { name: 'Day before', of: (row) => money(row.before), class: 'number' },
        {
          name: 'Requests',
          of: (row) => `${count(row.requests)} (${change(row.requests - row.requestsBefore, count)})`,
          class: 'number',
        },
        { name: 'Tokens', of: (row) => short(row.tokens), class: 'number' },
      ]}
    />
  );
}

export const Waiting = ({ read }: { readonly read: Read<unknown> }) =>
  read.error ? (
    <Failure error={read.error} retry={read.refresh} />
  ) : (
    <Shown read={{ ...read, data: undefined }}>{() => null}</Shown>
  );

export function Total({ rows }: { readonly rows: readonly Change[] }) {
  const cost = rows.reduce((sum, row) => sum + row.cost, 0);
  const before = rows.reduce((sum, row) => sum + row.before, 0);
  const estimated = rows.reduce((sum, row) => sum + row.estimated, 0);
  return (
    <p>
      <span class="big">{money(cost)}</span> {change(cost - before, money)} against {money(before)}
      {estimated > 0 && (
        <>
          ; {percent((100 * estimated) / cost)} of it is estimated, because{' '}
          <a href={urlOf('/cost', { by: 'model' })}>models without a price</a> cost the default
        </>
      )}
    </p>
  );
}
