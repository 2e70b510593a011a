/** The gateway's configuration document. */
import { z } from 'zod';
import { BODY_BOUNDS } from '../../storable.ts';
import { jsonObject } from '../common.ts';
import { storable } from '../storable.ts';
import { pathProblem } from './gateway-document.ts';

/** Actions that the primary gateway answers. */
export const gatewayConfigQuery = z.object({ action: z.enum(['schema']).optional() });
export const gatewayConfigPutQuery = z.object({ action: z.enum(['apply', 'update']).optional() });

export const gatewayConfigResponse = z.object({
  path: z.string().describe('where the document is kept'),
  config: jsonObject.describe('secrets are shown as 8 dashes; empty if no document is stored'),
  raw_size: z.int().describe('size of the stored text, bytes'),
  hash: z.string().describe('SHA-256 of the stored text, hex'),
});

export const gatewayConfigBody = jsonObject
  // The body is the document, contains it, or changes it; the bounds on size are checked once it is known what will be
  // stored.
  .superRefine(storable({ depth: BODY_BOUNDS.depth, characters: BODY_BOUNDS.characters }))
  .describe(
    '`{updates: {dotted.path: value}, hash?}` changes parts of the document; any other object replaces it (optionally as `config`, with the `hash` from GET beside it). Hidden secrets that are sent back as 8 dashes stay unchanged. With an `action`, only `hash` may be sent: that of the stored document.',
  );

export const updatesForm = z.strictObject({
  updates: jsonObject.superRefine((updates, context) => {
    const paths = Object.keys(updates);
    if (paths.length < 1 || paths.length > 100) context.addIssue('must have 1 to 100 paths');
    for (const path of paths) {
      const problem = path.length > 500 ? 'must have at most 500 characters' : pathProblem(path);
      if (problem) context.addIssue({ code: 'custom', path: [path.slice(0, 100)], message: problem });
    }
  }),
  hash: z.string().optional(),
});

export const gatewayActionBody = z.strictObject({ hash: z.string().optional() });
export const gatewayActionResponse = z.looseObject({ ok: z.literal(true) }).describe('response of the gateway');

export const gatewayConfigPutResponse = z.object({
  success: z.literal(true),
  updated: z.array(z.string()).describe('dotted paths that were set; `*`: the whole document'),
  count: z.int(),
  hash: z.string(),
});
