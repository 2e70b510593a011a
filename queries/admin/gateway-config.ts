/** The gateway's configuration document, with its secrets masked. */
import { gatewayConfigProjection } from '../../projections/admin/gateway-config.ts';
import { type GatewayDocument, hashOf } from '../../shared/contract/admin/gateway-document.ts';
import { masked } from '../../shared/secrets.ts';
import { inWorkspace, type Reads } from '../reads.ts';

/** The stored text; undefined if there is none. */
export async function storedText(reads: Reads, workspace: number): Promise<string | undefined> {
  const row = await inWorkspace(reads, gatewayConfigProjection, 'gateway_config', workspace)
    .select('document')
    .executeTakeFirst();
  return row?.document;
}

/** Whether a document is stored. */
export const hasGatewayConfig = async (reads: Reads, workspace: number): Promise<boolean> =>
  (await storedText(reads, workspace)) !== undefined;

/** The document with its secrets masked; an empty one if none is stored. */
export async function gatewayConfig(reads: Reads, workspace: number) {
  const text = (await storedText(reads, workspace)) ?? '';
  return {
    path: `event-log:gateway_config-${workspace}`,
    config: text === '' ? {} : (masked(JSON.parse(text)) as GatewayDocument),
    raw_size: Buffer.byteLength(text),
    hash: hashOf(text),
  };
}
