/** How receivers verify deliveries. */
import { verifyDocsResponse } from '../../../shared/contract/webhooks/signatures.ts';
import { defineRoute } from '../../http/route.ts';

const EXAMPLE = `import { createHmac, timingSafeEqual } from 'node:crypto';

/** @param rawBody the body as received, a Buffer */
export function isGenuine(secret, rawBody, signature) {
  const expected = Buffer.from(\`sha256=\${createHmac('sha256', secret).update(rawBody).digest('hex')}\`);
  const received = Buffer.from(signature ?? '');
  return received.length === expected.length && timingSafeEqual(received, expected);
}`;

export const webhookSignatureRoute = defineRoute({
  method: 'get',
  path: '/api/webhooks/verify-docs',
  noPast: 'the text is part of the program',
  summary: 'How to verify deliveries',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  responses: { 200: { description: 'Algorithm, steps and an example', schema: verifyDocsResponse } },
  handle: () => ({
    body: {
      algorithm: 'HMAC-SHA256' as const,
      header: 'X-MC-Signature' as const,
      format: 'sha256=<hex-digest>' as const,
      description:
        'Each delivery of a webhook with a secret is signed: an HMAC-SHA256 of the body, with the secret as it was shown (its text, not the bytes that the digits stand for) as the key. For a day after the secret was replaced, X-MC-Signature-Previous is the same with the old secret.',
      verification_steps: [
        'Take the raw body of the request, before it is parsed.',
        'Read the header X-MC-Signature.',
        'Compute the HMAC-SHA256 of the raw body, with the secret of the webhook as the key.',
        'Write the digest in lower-case hex, with sha256= in front.',
        'Compare it with the header in constant time.',
        'Reject the request when they differ.',
      ],
      example_nodejs: EXAMPLE,
      standard_webhooks: {
        headers: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
        format: 'v1,<base64-digest>',
        description:
          'The headers of Standard Webhooks are sent as well: the HMAC-SHA256 of <webhook-id>.<webhook-timestamp>.<body>, with the secret decoded from base64 as the key. Its libraries take the secret as it was shown. They also refuse old requests, and webhook-id tells repeated ones.',
      },
    },
  }),
});
