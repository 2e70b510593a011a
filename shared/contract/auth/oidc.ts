/** Sign-in through the OpenID Connect provider of the deployment: authorization code with PKCE. */
import { z } from 'zod';

const shortText = z.string().min(1, 'must not be empty').max(4_096);

export const oidcSettings = z.object({
  name: z.string().nullable().describe('what the button of a page says; null: no provider is configured'),
});
export const oidcBegun = z.object({
  url: z.string().describe('where the browser goes next; the provider sends it back to / with code and state'),
});
export const oidcBody = z.object({
  code: shortText.describe('authorization code, as the provider sent it'),
  state: shortText.describe('as the provider sent it'),
  iss: shortText.optional().describe('issuer, if the provider sent it (RFC 9207)'),
});
