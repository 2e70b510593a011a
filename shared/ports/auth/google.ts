/** The port of sign-in with Google: the account behind an ID token of Google. */

/** The data of a Google account. */
export interface GoogleProfile {
  readonly sub: string;
  /** Lower case. */
  readonly email: string;
  readonly name: string | null;
  readonly picture: string | null;
}

/** @throws AppError 400 when the token is invalid or cannot be verified now */
export type VerifyGoogleToken = (token: string) => Promise<GoogleProfile>;
