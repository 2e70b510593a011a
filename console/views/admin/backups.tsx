/** Backups: create with progress, list, delete. A backup continues after the user leaves this page. */
import { useEffect, useState } from 'preact/hooks';
import { call } from '../../client/client.ts';
import { refreshAll, useRead } from '../../client/reads.ts';
import { Act, say, write } from '../../parts/act.tsx';
import { Panel, Seconds, Shown, Table } from '../../parts/basic.tsx';
import { bytes, count, duration } from '../../parts/format.ts';

const LOOK_MS = 1_000;

export function Backups() {
  const read = useRead('GET /api/backup', {});
  const running = read.data?.running;
  useEffect(() => {
    if (!running) return;
    const timer = setTimeout(read.refresh, LOOK_MS);
    return () => clearTimeout(timer);
  }, [read.data]);
  const [isMine, setMine] = useState(false);
  const start = async () => {
    setMine(true);
    // The response arrives when the backup is complete; until then the progress is read separately.
    const writing = call('POST /api/backup', {}, { isLong: true });
    setTimeout(read.refresh, LOOK_MS / 2);
    const { data } = await writing.finally(() => setMine(false));
    refreshAll();
    say(`The backup is written: ${data.backup.name}, ${bytes(data.size_bytes)}.`);
  };
  return (
    <Panel
      title="Backups of this process"
      read={read}
      more={(isMine || !running) && <Act act={start}>Back up now</Act>}
    >
      <p class="dim">
        A backup has the whole log, its credentials and keys, encrypted. Keep a copy of the key that opens it (
        <code>signalbox backup-key</code>) away from the backups and from this machine.
      </p>
      {running && <Progress of={running} />}
      <Shown read={read}>
        {({ backups }) => (
          <Table
            label="Backups"
            rows={backups}
            id={(one) => one.name}
            empty="There are no backups yet."
            columns={[
              { name: 'File', of: (one) => <code>{one.name}</code>, class: 'grow' },
              { name: 'Size', of: (one) => bytes(one.size), class: 'number' },
              { name: 'Written', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
              {
                name: 'Action',
                of: (one) => (
                  <Act
                    danger
                    confirm={`The file ${one.name} is deleted.`}
                    act={() => write('DELETE /api/backup', { body: { name: one.name } }, 'Deleted.')}
                  >
                    Delete
                  </Act>
                ),
              },
            ]}
          />
        )}
      </Shown>
    </Panel>
  );
}

interface Running {
  /** Unix seconds. */
  readonly started_at: number;
  readonly position: number;
  readonly head: number | null;
}

/** Progress of a backup, its rate, and the remaining time. */
function Progress({ of: { started_at, position, head } }: { readonly of: Running }) {
  const took = Math.max(1, Date.now() / 1000 - started_at);
  const rate = position / took;
  const left = head !== null && rate > 0 ? (head - position) / rate : undefined;
  return (
    <p role="status" class="progress">
      <progress aria-label="Backup" value={position} max={head ?? undefined} /> Writing a backup: position{' '}
      {count(position)}
      {head !== null && ` of ${count(head)}`}, {count(Math.round(rate))} a second
      {left !== undefined && `, ${duration(left)} left`}. You can leave this page.
    </p>
  );
}
