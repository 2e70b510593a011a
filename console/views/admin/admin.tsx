/** Administration: its parts, and who may see them. */
import { urlOf } from '../../client/address.ts';
import { useRights } from '../../client/session.ts';
import { Page, Tabs } from '../../parts/basic.tsx';
import { Backups } from './backups.tsx';
import { Gateways } from './gateways.tsx';
import { GlobalKey } from './key.tsx';
import { Requests } from './requests.tsx';
import { Schedules } from './schedules.tsx';
import { Settings } from './settings.tsx';
import { Tenants } from './tenants.tsx';
import { Users } from './users.tsx';
import { Workspaces } from './workspaces.tsx';

const VIEWS = [
  ['users', 'Users', 'admin'],
  ['requests', 'Access requests', 'deployment'],
  ['workspaces', 'Workspaces', 'viewer'],
  ['tenants', 'Tenants', 'deployment'],
  ['schedules', 'Schedules', 'deployment'],
  ['backups', 'Backups', 'deployment'],
  ['settings', 'Settings', 'deployment'],
  ['gateways', 'Gateways', 'admin-deployment'],
  ['key', 'API key', 'deployment'],
] as const;

export function Admin({ view }: { readonly view: string | undefined }) {
  const { isAdmin, ofDeployment } = useRights();
  const tabs = VIEWS.filter(([, , who]) => who === 'viewer' || (who === 'admin' ? isAdmin : ofDeployment));
  const [now] = tabs.find(([id]) => id === view) ?? tabs[0] ?? ['workspaces'];
  return (
    <Page title="Admin">
      <Tabs
        label="Parts of administration"
        now={now}
        tabs={tabs.map(([id, name], at) => [id, name, urlOf(at === 0 ? '/admin' : `/admin/${id}`)])}
      />
      {now === 'users' && <Users />}
      {now === 'requests' && <Requests />}
      {now === 'workspaces' && <Workspaces />}
      {now === 'tenants' && <Tenants />}
      {now === 'schedules' && <Schedules />}
      {now === 'backups' && <Backups />}
      {now === 'settings' && <Settings />}
      {now === 'gateways' && <Gateways />}
      {now === 'key' && <GlobalKey />}
    </Page>
  );
}
