/** The signed-in user, and the permissions of that role. */
import type { Caller } from './api-types.ts';
import { CallError, call, whenSignedOut } from './client.ts';
import { forgetAll } from './reads.ts';
import { store, useStore } from './store.ts';
import { closeStream, openStream } from './stream.ts';

/** `asking` until it is known; `unreachable` when the service does not respond. */
export type Session =
  | { readonly state: 'asking' }
  | { readonly state: 'out'; readonly needsSetup: boolean; readonly note?: string }
  | { readonly state: 'unreachable'; readonly error: CallError }
  | { readonly state: 'in'; readonly me: Caller };

export const session = store<Session>({ state: 'asking' });

const needsSetup = async (): Promise<boolean> => {
  // Refused under host names that the operator has not listed; setup is then not possible from here.
  const { data } = await call('GET /api/setup').catch(() => ({ data: { needsSetup: false } }));
  return data.needsSetup;
};

function enter(me: Caller): void {
  session.set({ state: 'in', me });
  openStream().catch(() => undefined);
}

/** Finds out who is signed in: by cookie, or by a proxy. */
export async function findSession(): Promise<void> {
  try {
    const { data } = await call('GET /api/auth/me');
    enter(data.user);
  } catch (error) {
    const refusal = error as CallError;
    if (refusal.status === 401) session.set({ state: 'out', needsSetup: await needsSetup() });
    else session.set({ state: 'unreachable', error: refusal });
  }
}

whenSignedOut(() => {
  if (session.get().state !== 'in') return;
  closeStream();
  forgetAll();
  session.set({ state: 'out', needsSetup: false, note: 'Your session has ended. Sign in to go on where you were.' });
});

const NO_COOKIE =
  location.protocol === 'http:'
    ? 'The browser does not keep the session cookie over plain HTTP. Open the console over HTTPS, or ask an operator to set MC_COOKIE_SECURE=0.'
    : 'The browser does not send the session cookie. Allow cookies for this page.';

/** Shows the console after a sign-in, if the browser has kept the cookie. @throws CallError */
export async function entered(): Promise<void> {
  const { data } = await call('GET /api/auth/me').catch((error: CallError) => {
    throw error.status === 401 ? new CallError(NO_COOKIE, { status: 401 }) : error;
  });
  enter(data.user);
}

export async function signOut(): Promise<void> {
  await call('POST /api/auth/logout').catch((error: CallError) => {
    if (error.status !== 401) throw error;
  });
  closeStream();
  forgetAll();
  session.set({ state: 'out', needsSetup: false });
}

const RANK = { viewer: 0, operator: 1, admin: 2 } as const;

export interface Rights {
  readonly me: Caller;
  readonly isOperator: boolean;
  readonly isAdmin: boolean;
  /** Whether the user may make calls that concern the whole deployment, and read the log. */
  readonly ofDeployment: boolean;
}

const DEFAULT_TENANT = 1;

/** Only for components in a signed-in frame. */
export function useRights(): Rights {
  const now = useStore(session);
  if (now.state !== 'in') throw new Error('Nobody is signed in.');
  const rank = RANK[now.me.role];
  return {
    me: now.me,
    isOperator: rank >= 1,
    isAdmin: rank >= 2,
    ofDeployment: rank >= 2 && now.me.tenant_id === DEFAULT_TENANT,
  };
}
