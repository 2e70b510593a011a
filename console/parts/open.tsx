/** The drawer for the entry named by `open=` in the URL, for all views. */
import { useAddress } from '../client/address.ts';
import { useRights } from '../client/session.ts';
import { EventDrawer, PositionDrawer } from './drawer.tsx';
import { hasRecord, RecordDrawer } from './record.tsx';

export function OpenEntry() {
  const { query } = useAddress();
  const { ofDeployment } = useRights();
  const [kind = '', id = '', at = '0'] = (query.get('open') ?? '').split(':');
  if (id === '') return null;
  if (kind === 'event') return ofDeployment ? <EventDrawer key={id} id={id} /> : null;
  if (kind === 'position') return ofDeployment ? <PositionDrawer key={id} position={Number(id)} /> : null;
  return hasRecord(kind) ? <RecordDrawer key={`${kind} ${id}`} kind={kind} id={id} at={Number(at)} /> : null;
}
