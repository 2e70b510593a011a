/** The note that a restored deployment is paused, with the button that ends the pause. */
import { useRead } from '../client/reads.ts';
import { Act, write } from './act.tsx';
import { Seconds } from './basic.tsx';

export function PauseNote() {
  const { data } = useRead('GET /api/resume', {});
  if (!data?.paused) return null;
  return (
    <div class="past-note" role="status">
      <span>
        <strong>This deployment is paused</strong> since a backup was restored
        {data.since !== null && (
          <>
            {' '}
            (<Seconds at={data.since} />)
          </>
        )}
        : no call leaves, and no schedule runs.
      </span>{' '}
      <Act
        confirm="Webhooks, the agent runner, GitHub and gateways are called again, and schedules run. Events since the restore are delivered."
        act={() => write('POST /api/resume', {}, 'Resumed.')}
      >
        Resume
      </Act>
    </div>
  );
}
