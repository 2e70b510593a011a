/** What an import of agents from the gateway configuration would do. */
import { isDeepStrictEqual } from 'node:util';
import { type GatewayDocument, readableAgents, withGatewayKeys } from '../../shared/contract/admin/gateway-document.ts';
import { storedText } from '../admin/gateway-config.ts';
import type { Reads } from '../reads.ts';
import { withTexts } from './agents.ts';

/** Role and config of every agent of a workspace, for a comparison with the gateway's document. */
async function agentConfigs(reads: Reads, workspace: number) {
  return withTexts(reads, workspace).select(['a.name', 'a.role', 't.config']).orderBy('a.name').execute();
}

/** What an import would do with each name. @throws AppError 422 when the document cannot be read */
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
