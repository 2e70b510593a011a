/** The console: finds out who is signed in, then shows the view of the address. */
import { type ComponentChildren, render } from 'preact';
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { urlOf, useAddress } from './client/address.ts';
import { background } from './client/background.ts';
import type { CallError } from './client/client.ts';
import { findSession, type Session, session } from './client/session.ts';
import { useStore } from './client/store.ts';
import { Empty, Failure, Page } from './parts/basic.tsx';
import { Frame } from './parts/frame.tsx';
import { OpenEntry } from './parts/open.tsx';
import { Activity, Audit } from './views/activity.tsx';
import { Admin } from './views/admin/admin.tsx';
import { AgentView } from './views/agents/agent.tsx';
import { Agents } from './views/agents/agents.tsx';
import { Alerts } from './views/alerts.tsx';
import { Chat } from './views/chat.tsx';
import { Cost } from './views/cost/cost.tsx';
import { Log } from './views/log/log.tsx';
import { Overview } from './views/overview.tsx';
import { dropRedirect, SignIn } from './views/sign-in.tsx';
import { TaskView } from './views/tasks/task.tsx';
import { Tasks } from './views/tasks/tasks.tsx';
import { Webhooks } from './views/webhooks.tsx';

const Forbidden = () => (
  <Page title="Not for your role">
    <Empty>
      This view is for admins. <a href={urlOf('/')}>Back to the overview</a>
    </Empty>
  </Page>
);

function View({ isAdmin }: { readonly isAdmin: boolean }) {
  const [room, id] = useAddress().path;
  switch (room) {
    case undefined:
      return <Overview />;
    case 'agents':
      return id === undefined ? <Agents /> : <AgentView key={id} id={id} />;
    case 'tasks':
      return id === undefined ? <Tasks /> : <TaskView key={id} id={id} />;
    case 'activity':
      return <Activity />;
    case 'audit':
      return isAdmin ? <Audit /> : <Forbidden />;
    case 'cost':
      return <Cost />;
    case 'alerts':
      return <Alerts />;
    case 'webhooks':
      return isAdmin ? <Webhooks /> : <Forbidden />;
    case 'chat':
      return <Chat id={id} />;
    case 'log':
      return <Log view={id} />;
    default:
      return <Admin view={id} />;
  }
}

/** An error in one view does not affect the rest of the frame. */
function Safe({ children }: { readonly children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((reason) => console.error(reason));
  const { path } = useAddress();
  useEffect(reset, [path.join('/')]);
  if (!error) return <>{children}</>;
  return (
    <div class="failure" role="alert">
      <p>
        <strong>This view has failed.</strong> {String((error as Error).message ?? error)}
      </p>
      <button type="button" onClick={reset}>
        Try again
      </button>
    </div>
  );
}

/** Asks again by itself, as during a restart. */
const AGAIN_MS = 5_000;

function Unreachable({ error }: { readonly error: CallError }) {
  useEffect(() => {
    const timer = setTimeout(() => background(findSession()), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [error]);
  return (
    <main class="sign-in">
      <h1>Signalbox</h1>
      <Failure error={error} retry={() => background(findSession())} />
    </main>
  );
}

function Console() {
  const now: Session = useStore(session);
  switch (now.state) {
    case 'asking':
      return <p class="plain">Loading …</p>;
    case 'unreachable':
      return <Unreachable error={now.error} />;
    case 'out':
      return <SignIn needsSetup={now.needsSetup} note={now.note} />;
    case 'in':
      return (
        <Frame>
          <Safe>
            <View isAdmin={now.me.role === 'admin'} />
            <OpenEntry />
          </Safe>
        </Frame>
      );
  }
}

const place = document.getElementById('console');
if (!place) throw new Error('The page has no place for the console.');
render(<Console />, place);
background(
  findSession().then(() => {
    if (session.get().state === 'in') dropRedirect();
  }),
);
