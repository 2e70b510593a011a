/** The frame around every view: rooms, search, connection state, signed-in user, and the register. */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { go, setParams, urlOf, useAddress } from '../client/address.ts';
import { BASE } from '../client/base.ts';
import { useAsOf } from '../client/moment.ts';
import { signOut, useRights } from '../client/session.ts';
import { useStore } from '../client/store.ts';
import { lastHeard, link } from '../client/stream.ts';
import { Register } from '../register/register.tsx';
import { Act, Announcer, ChangeForm, Dialog, write } from './act.tsx';
import { State } from './basic.tsx';
import { time } from './format.ts';
import { PauseNote } from './pause.tsx';
import { Search } from './search.tsx';
import type { ChangeField } from './values.ts';

export interface Room {
  readonly path: string;
  readonly name: string;
  /** Key after `g`. */
  readonly key: string;
  readonly admin?: boolean;
}

export const ROOMS: readonly Room[] = [
  { path: '/', name: 'Overview', key: 'o' },
  { path: '/agents', name: 'Agents', key: 'a' },
  { path: '/tasks', name: 'Tasks', key: 't' },
  { path: '/activity', name: 'Activity', key: 'y' },
  { path: '/cost', name: 'Cost', key: 'c' },
  { path: '/alerts', name: 'Alerts', key: 'r' },
  { path: '/chat', name: 'Chat', key: 'm' },
  { path: '/audit', name: 'Audit', key: 'u', admin: true },
  { path: '/webhooks', name: 'Webhooks', key: 'w', admin: true },
  { path: '/log', name: 'Log', key: 'l' },
  { path: '/admin', name: 'Admin', key: 's' },
];

export function Frame({ children }: { readonly children: ComponentChildren }) {
  const { path } = useAddress();
  const { isAdmin, ofDeployment, me } = useRights();
  const moment = useAsOf();
  const [open, setOpen] = useState<'search' | 'help' | 'account'>();
  const [menu, setMenu] = useState(false);
  const rooms = ROOMS.filter(({ admin }) => isAdmin || !admin);
  const here = `/${path[0] ?? ''}`;
  useEffect(() => setMenu(false), [path.join('/')]);
  useKeys(rooms, setOpen);
  return (
    <div class={`frame ${moment === undefined ? '' : 'past'}`}>
      <button type="button" class="skip" onClick={() => document.getElementById('view')?.focus()}>
        Skip to the view
      </button>
      <header class="top">
        <button
          type="button"
          class="menu quiet"
          aria-expanded={menu}
          aria-controls="rooms"
          onClick={() => setMenu(!menu)}
        >
          ☰ <span class="sr">Menu</span>
        </button>
        <a class="brand" href={urlOf('/')}>
          <span class="lamp" aria-hidden="true" /> Signalbox
        </a>
        <button type="button" class="search" onClick={() => setOpen('search')}>
          Search <kbd>/</kbd>
        </button>
        <Connection />
        <button type="button" class="account quiet" onClick={() => setOpen('account')}>
          {me.display_name || me.username}{' '}
          {me.role !== me.display_name.toLowerCase() && <span class="dim role">{me.role}</span>}
        </button>
      </header>
      <nav id="rooms" class={`rail ${menu ? 'open' : ''}`} aria-label="Views">
        {rooms.map(({ path: to, name }) => (
          <a key={to} href={urlOf(to)} aria-current={here === to ? 'page' : undefined}>
            {name}
          </a>
        ))}
        <span class="below">
          <a href={`${BASE}/docs`}>API reference</a>
          <button type="button" class="quiet" onClick={() => setOpen('help')}>
            Shortcuts <kbd>?</kbd>
          </button>
        </span>
      </nav>
      <main id="view" tabIndex={-1}>
        {moment !== undefined && (
          <p class="past-note" role="status">
            <strong>You see the past.</strong> Nothing can be changed here.{' '}
            <button type="button" class="quiet" onClick={() => setParams({ at: undefined })}>
              Back to now
            </button>
          </p>
        )}
        {ofDeployment && moment === undefined && <PauseNote />}
        {children}
      </main>
      <Register />
      <Announcer />
      {open === 'account' && <Account close={() => setOpen(undefined)} />}
      {open === 'search' && <Search rooms={rooms} close={() => setOpen(undefined)} />}
      {open === 'help' && <Help rooms={rooms} close={() => setOpen(undefined)} />}
    </div>
  );
}

function useKeys(rooms: readonly Room[], setOpen: (what: 'search' | 'help') => void): void {
  const waits = useRef(0);
  // Before the frame is painted, so that keys work as soon as it is visible.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.metaKey || event.ctrlKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      if (document.querySelector('dialog[open]')) return;
      if (event.key === '/') {
        event.preventDefault();
        setOpen('search');
      } else if (event.key === '?') setOpen('help');
      else if (event.key === 'n' && new URLSearchParams(location.search).has('at')) setParams({ at: undefined });
      else if (event.key === 'g') waits.current = Date.now();
      else if (Date.now() - waits.current < 1_500) {
        waits.current = 0;
        const room = rooms.find(({ key }) => key === event.key);
        if (room) go(urlOf(room.path));
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [rooms.length]);
}

function Connection() {
  const now = useStore(link);
  const heard = useStore(lastHeard);
  const [online, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const set = () => setOnline(navigator.onLine);
    addEventListener('online', set);
    addEventListener('offline', set);
    return () => {
      removeEventListener('online', set);
      removeEventListener('offline', set);
    };
  }, []);
  const moment = useAsOf();
  const since = heard > 0 && <span class="since"> since {time(heard)}</span>;
  const [tone, text] =
    now === 'live' && online
      ? (['good', moment === undefined ? 'Live' : 'Past'] as const)
      : !online
        ? (['bad', 'Offline'] as const)
        : now === 'connecting'
          ? (['wait', 'Connecting'] as const)
          : (['warn', 'Stale'] as const);
  return (
    <span class="connection" role="status">
      <State is="connection" tone={tone} text={text} />
      {(text === 'Offline' || text === 'Stale') && since}
    </span>
  );
}

const PASSWORD_FIELDS = [
  { name: 'current_password', label: 'Current password', type: 'password', hint: 'Needed only for a new password.' },
  {
    name: 'new_password',
    label: 'New password',
    type: 'password',
    hint: 'At least 8 characters. Other sessions end.',
  },
] as const satisfies readonly ChangeField[];

/** The names of other users are those that their provider has. */
const NAMED_HERE: readonly string[] = ['local', 'proxy'];

function Account({ close }: { readonly close: () => void }) {
  const { me } = useRights();
  return (
    <Dialog title="Your account" close={close}>
      <div class="page-head">
        <span>
          Signed in as <strong>{me.username}</strong> · role {me.role} · workspace {me.workspace_id}
        </span>
        <Act act={signOut}>Sign out</Act>
      </div>
      {me.id > 0 && NAMED_HERE.includes(me.provider) && (
        <ChangeForm
          fields={[
            { name: 'display_name', label: 'Display name', value: me.display_name, required: true },
            ...(me.provider === 'local' ? PASSWORD_FIELDS : []),
          ]}
          send={(body) => write('PATCH /api/auth/me', { body })}
          close={close}
        />
      )}
    </Dialog>
  );
}

function Help({ rooms, close }: { readonly rooms: readonly Room[]; readonly close: () => void }) {
  const keys: readonly (readonly [string, string])[] = [
    ['/', 'search'],
    ['?', 'these shortcuts'],
    ['n', 'back to now'],
    ['Esc', 'close what is open'],
    ['← →', 'on the register: another moment; with Shift, further'],
    ['PgUp PgDn', 'on the register: ten steps'],
    ...rooms.map(({ name, key }) => [`g ${key}`, name] as const),
  ];
  return (
    <Dialog title="Shortcuts" close={close}>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
