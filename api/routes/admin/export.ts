/** Data of a workspace as a file, written while it is read. */
import { recordExport } from '../../../commands/admin/export.ts';
import { EXPORTS, type ExportedRow, exportedRows } from '../../../queries/admin/export.ts';
import { EXPORT_KINDS, type ExportKind, exportQuery, exportResponse } from '../../../shared/contract/admin/export.ts';
import { type Identity, taskViewOf } from '../../../shared/identity.ts';
import { showPosition } from '../../http/consistency.ts';
import { csvLine, marked } from '../../http/csv.ts';
import { again, sendFile } from '../../http/files.ts';
import { defineRoute, HANDLED } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const csvOf = (rows: readonly Parameters<typeof csvLine>[0][]): string =>
  rows.map((cells) => `${csvLine(cells)}\n`).join('');

type Pages = AsyncIterable<readonly ExportedRow[]>;
interface Part {
  readonly kind: ExportKind;
  readonly pages: Pages;
}

async function* jsonText(
  head: Readonly<Record<string, unknown>>,
  parts: readonly Part[],
  count: () => number,
): AsyncGenerator<string> {
  const single = parts.length === 1;
  let text = `${JSON.stringify(head).slice(0, -1)},"data":${single ? '' : '{'}`;
  for (const [nth, { kind, pages }] of parts.entries()) {
    text += `${nth === 0 ? '' : ','}${single ? '' : `"${kind}":`}[`;
    let separator = '';
    for await (const page of pages) {
      for (const row of page) {
        text += `${separator}${JSON.stringify(row)}`;
        separator = ',';
      }
      yield text;
      text = '';
    }
    text += ']';
  }
  yield `${text}${single ? '' : '}'},"count":${count()}}`;
}

/** One CSV table; with several kinds of records, the first column names the kind of a row. */
async function* csvText(parts: readonly Part[]): AsyncGenerator<string> {
  const single = parts.length === 1;
  const columns = [...new Set(parts.flatMap(({ kind }) => EXPORTS[kind].columns))];
  let text = csvOf([single ? columns : ['record', ...columns]]);
  for (const { kind, pages } of parts) {
    for await (const page of pages) {
      text += csvOf(
        page.map((row) => {
          const cells = columns.map((name) => (EXPORTS[kind].columns.includes(name) ? row[name] : null));
          return single ? cells : [kind, ...cells];
        }),
      );
      yield text;
      text = '';
    }
  }
  yield text;
}

/** Rows of tasks with the display names of their creators. */
async function withCreators(
  { displayNames }: Services,
  { workspace }: Identity,
  rows: readonly ExportedRow[],
): Promise<readonly ExportedRow[]> {
  const shownAs = await displayNames.of(
    workspace,
    rows.map(({ created_by }) => String(created_by)),
  );
  return rows.map((row) => ({ ...row, created_by: shownAs(String(row.created_by), Number(row.created_at)) }));
}

export const exportRoute = defineRoute({
  method: 'get',
  path: '/api/export',
  summary: 'Export records as JSON or CSV',
  description:
    'Sends a file of the newest records of the workspace. Secrets in the configs of agents and the metadata of tasks are hidden. In CSV, texts that a spreadsheet would run as formulas begin with an apostrophe. The export is recorded in the audit trail; a response that breaks off is not a complete export.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'all', prompts: 'none' },
  limit: 'heavy',
  // An export is recorded in the audit trail.
  writes: true,
  query: exportQuery,
  responses: { 200: { description: 'A file', schema: exportResponse, also: ['text/csv'] } },
  async handle({ query, identity, context, services, command }) {
    const { type, format } = query;
    // The whole file shows one position, although the export itself is recorded meanwhile.
    const reads = services.reads.response({ since: context.startedAt });
    const now = new Date(services.now()).toISOString();
    let rowCount = 0;
    let recording: Promise<unknown> | undefined;
    const record = () => {
      recording ??= recordExport(services.commands, command, { what: type, format, row_count: rowCount });
      return recording;
    };
    async function* counted(kind: ExportKind, isLast: boolean): Pages {
      for await (const page of exportedRows(reads, taskViewOf(identity), kind, query)) {
        rowCount += page.length;
        yield kind === 'tasks' ? await withCreators(services, identity, page) : page;
      }
      // Before the end of the response, so that every complete file is in the audit trail.
      if (isLast) await record();
    }
    const kinds = type === 'all' ? EXPORT_KINDS : [type];
    const parts = kinds.map((kind, nth) => ({ kind, pages: counted(kind, nth === kinds.length - 1) }));
    const text =
      format === 'csv'
        ? marked(csvText(parts), query.bom === '1')
        : jsonText({ type, exported_at: now }, parts, () => rowCount);
    // Read before the first byte is sent, so that an unreachable store still gives a response with an error status.
    const first = await text.next();
    showPosition(context, reads.position, reads.isExact);
    const name = `${type === 'all' ? 'all' : EXPORTS[type].file}-${now.slice(0, 10)}.${format}`;
    try {
      const complete = await sendFile(context, format, `attachment; filename=${name}`, again(first, text));
      if (!complete) services.log.info({ requestId: context.id, rows: rowCount }, 'the client of an export went away');
    } finally {
      // What was sent has left the service, so it is recorded too.
      await record();
    }
    return HANDLED;
  },
});
