/** The current gateway configuration document of each workspace. */

import { documentText } from '../../shared/contract/admin/gateway-document.ts';
import { gatewayConfigChanged } from '../../shared/events/admin/gateway-config.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineProjection, defineTable, on } from '../projection.ts';

export const gatewayConfigTable = defineTable(
  'gateway_config',
  /** The document as JSON text: the hash is computed from this text, and jsonb would sort the keys. */
  { workspace_id: 'int', document: 'text', updated_at: 'bigint' },
  { key: ['workspace_id'] },
);

export const gatewayConfigProjection = defineProjection({
  name: 'gateway_config',
  // 2: without indentation.
  version: 1,
  tables: [gatewayConfigTable],
  handlers: [
    on(gatewayConfigChanged, ({ data, meta }) => [
      change(gatewayConfigTable, { workspace_id: meta.workspace }, () =>
        // A document whose key has been deleted can no longer be read, so the workspace has none.
        data.document === null
          ? undefined
          : { workspace_id: meta.workspace, document: documentText(data.document), updated_at: seconds(meta.at) },
      ),
    ]),
  ],
});
