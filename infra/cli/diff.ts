/** `signalbox diff`: what differs between two moments of the log, as a table. */
import type { Command } from 'commander';
import { momentOf, startOf } from '../../api/http/as-of.ts';
import { diffBetween } from '../../queries/history/diff.ts';
import { DIFF_RESOURCES, type DiffResponse, diffQuery } from '../../shared/contract/history/diff.ts';
import { DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { currentIndex } from '../log-index/current.ts';
import { columns, counted, withCore } from './with-core.ts';

interface Options {
  readonly from: string;
  readonly to?: string;
  readonly resource?: string;
  readonly id?: string;
  readonly workspace: string;
}

/** Maximum number of characters of a value. */
const SHOWN = 60;

export function addDiff(program: Command): void {
  program
    .command('diff')
    .description('show which records differ between two moments of the log')
    .requiredOption('--from <moment>', 'a position of the log, a time in RFC 3339, or 0: before the first event')
    .option('--to <moment>', 'a position or a time; by default, now')
    .option('--resource <kind>', `one kind of records: ${DIFF_RESOURCES.join(', ')}`)
    .option('--id <number>', 'one record')
    .option('--workspace <number>', 'id of the workspace', String(DEFAULT_WORKSPACE))
    .action(async ({ workspace, ...options }: Options) => {
      if (!/^[1-9]\d{0,8}$/.test(workspace)) throw new Error('--workspace must be a positive whole number');
      const to = options.to ?? new Date().toISOString();
      const parsed = diffQuery.safeParse({ ...options, to, limit: '200' });
      if (!parsed.success)
        throw new Error(parsed.error.issues.map(({ path, message }) => `--${path.join('.')}: ${message}`).join('; '));
      const changes = await withCore(
        async (core) => {
          const { positions, reads } = core;
          const logIndex = await currentIndex(core);
          const parts = { logIndex, readModels: positions, now: Date.now };
          const from = await startOf(parts, options.from);
          const { position: until } = await momentOf(parts, to, 'to');
          if (from > until) throw new Error('--from must not be after --to');
          const range = { reads, workspace: Number(workspace), from, to: until };
          const found: DiffResponse['changes'] = [];
          for (let query = parsed.data; ; ) {
            const page = await diffBetween(logIndex, range, query);
            found.push(...page.changes);
            if (page.next_cursor === null) return found;
            query = { ...query, cursor: diffQuery.shape.cursor.parse(page.next_cursor) };
          }
        },
        { project: true },
      );
      console.log(columns(['record', 'change', 'field', 'before', 'after'], changes.flatMap(rowsOf)));
      console.log(counted(changes.length, 'record'));
    });
}

/** One line per field; the first line names the record. */
function rowsOf({ resource, id, change, fields }: DiffResponse['changes'][number]): string[][] {
  return Object.entries(fields).map(([name, { before, after }], n) => [
    ...(n === 0 ? [`${resource} ${id}`, change] : ['', '']),
    name,
    textOf(name, before),
    textOf(name, after),
  ]);
}

/** Whether a number is a time since 2001 in Unix seconds, not in milliseconds. */
const isSeconds = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) > 1e9 && (value as number) < 1e11;

/** A value in a table; times as RFC 3339. */
export function textOf(name: string, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (name.endsWith('_at') && isSeconds(value)) return new Date(value * 1_000).toISOString().replace('.000Z', 'Z');
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const line = text.replace(/\s+/g, ' ');
  return line.length > SHOWN ? `${line.slice(0, SHOWN - 1)}…` : line;
}
