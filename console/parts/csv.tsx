/** A link that saves a list as CSV, in the form that spreadsheets read. */
import { BASE } from '../client/base.ts';
import { useAsOf } from '../client/moment.ts';
import { useRights } from '../client/session.ts';

type Values = Readonly<Record<string, string | number | undefined>>;

interface CsvProps {
  /** Of the call, without `format`. */
  readonly path: '/api/export' | '/api/tokens';
  readonly query: Values;
  /** What the file has. */
  readonly what: string;
}

/** Only admins export records. */
export function CsvLink({ path, query, what }: CsvProps) {
  const { isAdmin } = useRights();
  const asOf = useAsOf();
  if (path === '/api/export' && !isAdmin) return null;
  const asked = new URLSearchParams({ format: 'csv', bom: '1' });
  for (const [name, value] of Object.entries({ ...query, as_of: asOf }))
    if (value !== undefined && value !== '') asked.set(name, String(value));
  return (
    <a href={`${BASE}${path}?${asked}`} download title={what}>
      CSV
    </a>
  );
}
