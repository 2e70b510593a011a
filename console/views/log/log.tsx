/** The log: its events, the differences between two moments, and whether it was altered. */
import { urlOf, useAddress } from '../../client/address.ts';
import { useRights } from '../../client/session.ts';
import { Page, Panel, Tabs } from '../../parts/basic.tsx';
import { Verdict } from '../../parts/verdict.tsx';
import { Difference } from './difference.tsx';
import { Events } from './events.tsx';

export function Log({ view }: { readonly view: string | undefined }) {
  const { isAdmin, ofDeployment } = useRights();
  const { query } = useAddress();
  const tabs = [ofDeployment && 'events', isAdmin && 'diff', 'verify'].filter((one): one is string => one !== false);
  const now = tabs.find((one) => one === view) ?? tabs[0];
  return (
    <Page title="Log" about="Every change is an event in an append-only log.">
      <Tabs
        label="Parts of the log"
        now={now ?? ''}
        tabs={tabs.map((one) => [
          one,
          { events: 'Events', diff: 'Difference', verify: 'Verify' }[one] ?? one,
          urlOf(one === tabs[0] ? '/log' : `/log/${one}`),
        ])}
      />
      {now === 'events' && <Events />}
      {now === 'diff' && <Difference />}
      {now === 'verify' && (
        <Panel title="Was the log altered?">
          <Verdict event={query.get('event') ?? undefined} />
        </Panel>
      )}
    </Page>
  );
}
