/** The gateway's configuration document, as it may be shown, and what an import of its agents would do. */
import { isDeepStrictEqual } from 'node:util';
import { gatewayConfigProjection } from '../../projections/admin/gateway-config.ts';
import {
  type GatewayDocument,
  hashOf,
  readableAgents,
  withGatewayKeys,
} from '../../shared/contract/admin/gateway-document.ts';
import { masked } from '../../shared/secrets.ts';
import { agentConfigs } from '../agents/agents.ts';
import { type Reads, tables } from '../reads.ts';

/** The stored text; undefined when there is none. */
async function storedText(reads: Reads, workspace: number): Promise<string | undefined> {
  const row = await tables(reads, gatewayConfigProjection)
    .selectFrom('gateway_config')
    .where('workspace_id', '=', workspace)
    .select('document')
    .executeTakeFirst();
  return row?.document;
}

/** Whether a document is stored. */
export const hasGatewayConfig = async (reads: Reads, workspace: number): Promise<boolean> =>
  (await storedText(reads, workspace)) !== undefined;

/** The document with its secrets hidden; an empty one when none is stored. */
export async function gatewayConfig(reads: Reads, workspace: number) {
  const text = (await storedText(reads, workspace)) ?? '';
  return {
    path: `event-log:gateway_config-${workspace}`,
    config: text === '' ? {} : (masked(JSON.parse(text)) as GatewayDocument),
    raw_size: Buffer.byteLength(text),
    hash: hashOf(text),
  };
}

/** What an import would do, by name. @throws AppError 422 when the document cannot be read */
export async function previewSync(reads: Reads, workspace: number) {
  const text = await storedText(reads, workspace);
  const wanted = text === undefined ? [] : readableAgents(JSON.parse(text) as GatewayDocument);
  const known = new Map((await agentConfigs(reads, workspace)).map((agent) => [agent.name, agent]));
  const inDocument = new Set(wanted.map((agent) => agent.name));
  return {
    inConfig: wanted.length,
    inMC: known.size,
    newAgents: wanted.filter((agent) => !known.has(agent.name)).map((agent) => agent.name),
    updatedAgents: wanted
      .filter((agent) => {
        const before = known.get(agent.name);
        if (!before) return false;
        const config = before.config as GatewayDocument;
        return before.role !== agent.role || !isDeepStrictEqual(withGatewayKeys(config, agent.config), { ...config });
      })
      .map((agent) => agent.name),
    onlyInMC: [...known.keys()].filter((name) => !inDocument.has(name)),
  };
}
