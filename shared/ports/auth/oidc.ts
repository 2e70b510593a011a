/** The OpenID Connect provider of the deployment. */

/** The provider's data about an account. */
export interface OidcProfile {
  /** Issuer and subject: identifies the account for good. */
  readonly account: string;
  /** Names from which to derive a username, the best first. */
  readonly names: readonly string[];
  readonly displayName: string | null;
  /** Lower case. Null unless the provider has verified it. */
  readonly email: string | null;
  readonly picture: string | null;
  readonly groups: AccountGroups;
}

/**
 * The groups of an account. They are unknown if the provider sent no claim (`absent`), sent a reference in its place
 * because there are too many of them (`overage`), or sent the claim in a form that cannot be read (`unreadable`).
 */
export type AccountGroups =
  | { readonly known: readonly string[] }
  | { readonly unknown: 'absent' | 'overage' | 'unreadable' };

/** Secrets of a started sign-in. They are kept in the browser that started it. */
export interface BegunSignIn {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636). */
  readonly verifier: string;
}

export interface OidcProvider {
  /** Whether access tokens of the provider are accepted as credentials. */
  readonly acceptsTokens: boolean;
  /** @throws AppError 400 `OIDC_MISCONFIGURED`, 503 `OIDC_UNREACHABLE` */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly begun: BegunSignIn }>;
  /**
   * Exchanges the code for an ID token and checks it.
   *
   * @throws AppError 400 when code, state or token are not valid, 503 `OIDC_UNREACHABLE`
   */
  finish(
    response: { readonly code: string; readonly state: string; readonly iss?: string | undefined },
    redirectUri: string,
    begun: BegunSignIn,
  ): Promise<OidcProfile>;
  /**
   * Checks an access token in the form of a JWT. `fault`: a sentence that says why it is not valid.
   *
   * @throws AppError 400 `OIDC_MISCONFIGURED`, 503 `OIDC_UNREACHABLE`
   */
  verify(
    token: string,
  ): Promise<{ readonly profile: OidcProfile; readonly expiresAt: number } | { readonly fault: string }>;
}

/** The meaning of a provider's group: a role, in a workspace if one is named. */
export interface GroupRule {
  /** `*`: every account. */
  readonly group: string;
  readonly role: 'viewer' | 'operator' | 'admin';
  /** Slug; null: the default workspace for new users, and the current workspace for others. */
  readonly workspace: string | null;
}
