/**
 * The headers of every response; none depends on the request. They follow the recommendations of the OWASP project
 * (https://owasp.org/www-project-secure-headers).
 */

/** Pages may only load from this server; Swagger UI's own style sheet is inline. */
const CONTENT_SECURITY =
  "default-src 'self';style-src 'self' 'unsafe-inline';img-src 'self' data:;frame-ancestors 'none';base-uri 'none';form-action 'self'";

export const securityHeaders = ({
  enableHsts,
}: {
  readonly enableHsts: boolean;
}): readonly (readonly [name: string, value: string])[] => [
  ['Permissions-Policy', 'camera=(), microphone=(), geolocation=()'],
  // Responses may carry credentials; those that may be cached override this header.
  ['Cache-Control', 'no-store'],
  ['Content-Security-Policy', CONTENT_SECURITY],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Origin-Agent-Cluster', '?1'],
  ['Referrer-Policy', 'strict-origin-when-cross-origin'],
  ...(enableHsts ? [['Strict-Transport-Security', 'max-age=31536000; includeSubDomains'] as const] : []),
  ['X-Content-Type-Options', 'nosniff'],
  ['X-DNS-Prefetch-Control', 'off'],
  ['X-Download-Options', 'noopen'],
  ['X-Frame-Options', 'DENY'],
  ['X-Permitted-Cross-Domain-Policies', 'none'],
  ['X-XSS-Protection', '0'],
];
