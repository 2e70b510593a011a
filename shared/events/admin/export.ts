/** Exports of data. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const dataExported = defineEvent({
  type: 'DataExported',
  doc: 'Data left the deployment as a file.',
  schema: z.object({ what: z.string(), format: z.string(), row_count: z.int().nonnegative() }),
  audit: ({ data }) => ({
    action: 'data_export',
    detail: { type: data.what, format: data.format, row_count: data.row_count },
  }),
});
