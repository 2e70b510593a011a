/** The API key of the deployment. A new key is shown once. */
import { useState } from 'preact/hooks';
import { useRead } from '../../client/reads.ts';
import { Act, Dialog, write } from '../../parts/act.tsx';
import { Copy, Empty, Panel, Seconds, Shown } from '../../parts/basic.tsx';

export function GlobalKey() {
  const read = useRead('GET /api/tokens/rotate', {});
  const [key, setKey] = useState<string>();
  return (
    <Panel title="The API key of the deployment" read={read}>
      {key && (
        <Dialog title="The new key" close={() => setKey(undefined)}>
          <p>It is shown only now. Only its hash is kept.</p>
          <pre tabIndex={0}>{key}</pre>
          <div class="buttons">
            <Copy text={key} label="Copy" />
          </div>
        </Dialog>
      )}
      <Shown read={read}>
        {(data) =>
          data.configured ? (
            <p>
              <code>{data.masked_key}</code>, from {data.source === 'database' ? 'a rotation' : data.source}
              {data.last_rotated_at !== null && (
                <>
                  , <Seconds at={data.last_rotated_at} /> by {data.last_rotated_by}
                </>
              )}
            </p>
          ) : (
            <Empty>There is no key.</Empty>
          )
        }
      </Shown>
      <Act
        danger
        confirm="The present key stops working at once, for every client that uses it."
        act={async () => {
          const { key: made } = await write('POST /api/tokens/rotate', {});
          setKey(made);
        }}
      >
        Replace the key
      </Act>
    </Panel>
  );
}
