/**
 * Signing in: by password, Google or the identity provider; creating the first admin. A proxy signs users in before.
 */
import { useEffect, useState } from 'preact/hooks';
import { address, go, urlOf } from '../client/address.ts';
import { background } from '../client/background.ts';
import { BASE } from '../client/base.ts';
import { CallError, call } from '../client/client.ts';
import { useRead } from '../client/reads.ts';
import { entered } from '../client/session.ts';
import { type Field, Form } from '../parts/act.tsx';
import { Failure } from '../parts/basic.tsx';

const NONCE = 'signalbox-google-nonce';
const RETURN_TO = 'signalbox-return-to';

/** The redirect of a provider leads to the overview, so the page that the user came for is kept in this window. */
const keepPage = (): void => sessionStorage.setItem(RETURN_TO, location.pathname + location.search);

/** Removes the redirect of a provider from the address, and shows the page that the user came for. */
function backToPage(): void {
  const page = sessionStorage.getItem(RETURN_TO) ?? urlOf('/');
  sessionStorage.removeItem(RETURN_TO);
  go(page, { replace: true });
}

/** The redirect of the identity provider in the address; undefined if there is none. */
function redirected() {
  const query = new URLSearchParams(location.search);
  const [code, state, iss, refused] = ['code', 'state', 'iss', 'error'].map((name) => query.get(name));
  if (address().path.length > 0 || !state || !(code || refused)) return undefined;
  return { code, state, iss, refused: query.get('error_description') ?? refused };
}

/** For a window in which the user is signed in already: the redirect has no use. */
export function dropRedirect(): void {
  if (redirected() || new URLSearchParams(location.hash.slice(1)).has('id_token')) backToPage();
}

/** Google redirects back here with an ID token after the `#`, which no server sees. */
function startGoogle(clientId: string): void {
  const nonce = Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(36)).join('');
  sessionStorage.setItem(NONCE, nonce);
  keepPage();
  const query = new URLSearchParams({
    client_id: clientId,
    redirect_uri: `${location.origin}${BASE}/`,
    response_type: 'id_token',
    scope: 'openid email profile',
    nonce,
  });
  location.assign(`https://accounts.google.com/o/oauth2/v2/auth?${query}`);
}

function payloadOf(token: string): { readonly nonce?: string } {
  const part = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
  try {
    return JSON.parse(atob(part)) as { nonce?: string };
  } catch {
    return {};
  }
}

/** Completes a sign-in with Google that this window started. */
async function finishGoogle(): Promise<void> {
  const answer = new URLSearchParams(location.hash.slice(1));
  const credential = answer.get('id_token');
  const refused = answer.get('error');
  if (!credential && !refused) return;
  backToPage();
  const nonce = sessionStorage.getItem(NONCE);
  sessionStorage.removeItem(NONCE);
  if (!credential)
    throw new CallError(`Google responded: ${refused}. Try again, or sign in with a password.`, { status: 0 });
  if (!nonce || payloadOf(credential).nonce !== nonce)
    throw new CallError('This sign-in was not begun in this window. Try again.', { status: 0 });
  await call('POST /api/auth/google', { body: { credential } });
  await entered();
}

async function startOidc(): Promise<void> {
  const { data } = await call('POST /api/auth/oidc/begin');
  keepPage();
  location.assign(data.url);
}

/** Completes a sign-in at the identity provider, which redirects here with a code. The cookie shows who started it. */
async function finishOidc(): Promise<void> {
  const redirect = redirected();
  if (!redirect) return;
  const { code, state, iss, refused } = redirect;
  backToPage();
  if (!code) throw new CallError(`The identity provider responded: ${refused}.`, { status: 0 });
  await call('POST /api/auth/oidc', { body: { code, state, ...(iss && { iss }) } });
  await entered();
}

const LOGIN: readonly Field[] = [
  { name: 'username', label: 'Name', required: true, complete: 'username' },
  { name: 'password', label: 'Password', type: 'password', required: true, complete: 'current-password' },
];

export function SignIn({ needsSetup, note }: { readonly needsSetup: boolean; readonly note?: string }) {
  const google = useRead('GET /api/auth/google', {});
  const oidc = useRead('GET /api/auth/oidc', {});
  const [error, setError] = useState<CallError>();
  useEffect(() => {
    document.title = 'Sign in · Signalbox';
    background(finishGoogle().catch((reason: CallError) => setError(reason)));
    background(finishOidc().catch((reason: CallError) => setError(reason)));
  }, []);
  const clientId = google.data?.client_id;
  const provider = oidc.data?.name;
  return (
    <main class="sign-in">
      <h1>
        <span class="lamp" aria-hidden="true" /> Signalbox
      </h1>
      {needsSetup ? (
        <>
          <p>This deployment has no users yet. Create its first admin.</p>
          <Form
            fields={[
              { name: 'username', label: 'Name', required: true, hint: 'Small letters, digits, _ . and -' },
              { name: 'displayName', label: 'Display name' },
              { name: 'password', label: 'Password', type: 'password', required: true },
            ]}
            submit="Create the admin"
            send={async (body) => {
              await call('POST /api/setup', { body });
              await entered();
            }}
          />
        </>
      ) : (
        <>
          {note && <p role="status">{note}</p>}
          <Form
            fields={LOGIN}
            submit="Sign in"
            send={async (body) => {
              await call('POST /api/auth/login', { body });
              await entered();
            }}
          />
          <p class="dim">The first start of the service prints the name and the password of its first admin.</p>
          {provider && (
            <p class="or">
              <button
                type="button"
                onClick={() => background(startOidc().catch((reason: CallError) => setError(reason)))}
              >
                Sign in with {provider}
              </button>
            </p>
          )}
          {clientId && (
            <p class="or">
              <button type="button" onClick={() => startGoogle(clientId)}>
                Sign in with Google
              </button>
            </p>
          )}
        </>
      )}
      {error && <Failure error={error} />}
      <p class="dim">
        <a href={`${BASE}/docs`}>API reference</a>
      </p>
    </main>
  );
}
