/** Calls of the API, by the client of this repository (`client/`); a 401 ends the session. */
import {
  type Answer,
  type Call,
  createClient,
  type LooselyAsked,
  type ResponseOf,
  SignalboxError,
} from '../../client/index.ts';
import { BASE } from './base.ts';

export { addressOf, type Call, type ResponseOf, SignalboxError as CallError } from '../../client/index.ts';
export type Asked = Pick<LooselyAsked, 'params' | 'query' | 'body'>;

/** For calls that do long work before they respond, such as a backup. */
const LONG_TIMEOUT_MS = 30 * 60_000;

export interface CallOptions {
  /** Ends the call, which then throws. */
  readonly signal?: AbortSignal;
  readonly isLong?: boolean;
}

/** Short pauses, because a person is waiting. */
export const client = createClient({ url: BASE, retries: 2, longestPauseMs: 2_000 });

/** Handlers of a 401 outside of signing in. */
let onSignedOut: () => void = () => undefined;
export const whenSignedOut = (handler: () => void): void => {
  onSignedOut = handler;
};

/** @throws CallError for a refusal, a time-out, or without a connection */
export async function call<C extends Call>(
  name: C,
  asked: Asked = {},
  { signal, isLong = false }: CallOptions = {},
): Promise<Answer<ResponseOf<C>>> {
  try {
    const options = { signal, timeoutMs: isLong ? LONG_TIMEOUT_MS : undefined };
    return (await client.send(name, { ...asked, ...options })) as Answer<ResponseOf<C>>;
  } catch (error) {
    const isSignedOut = error instanceof SignalboxError && error.status === 401;
    if (isSignedOut && !name.startsWith('POST /api/auth/')) onSignedOut();
    throw error;
  }
}
