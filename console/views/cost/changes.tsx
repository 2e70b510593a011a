/** What changed between two days: a table, and the sum. */
import type { Read } from '../../client/reads.ts';
import { Failure, Shown, Table } from '../../parts/basic.tsx';
import { change, count, money, short } from '../../parts/format.ts';
import type { Change } from './spend.ts';

export function Changes({
  rows,
  label,
  name,
  href,
  empty,
}: {
  readonly rows: readonly Change[];
  readonly label: string;
  readonly name: string;
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
        { name, of: (row) => row.name, class: 'grow' },
        { name: 'Change', of: (row) => <strong>{change(row.cost - row.before, money)}</strong>, class: 'number' },
        { name: 'Day', of: (row) => money(row.cost), class: 'number' },
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
  return (
    <p>
      <span class="big">{money(cost)}</span> {change(cost - before, money)} against {money(before)}
    </p>
  );
}
