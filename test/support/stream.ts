/** A client of the event stream that keeps what it got. */

export interface Frame {
  readonly id: string | undefined;
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: payloads are looked into freely.
  readonly data: any;
  readonly timestamp: number;
}

export interface OpenStream {
  /** Without the `connected` frame. */
  readonly frames: Frame[];
  /** Data of the `connected` frame. */
  readonly connected: Frame['data'];
  readonly comments: string[];
  readonly lastId: string;
  readonly headers: Headers;
  /** Resolves when `holds`; fails when the stream ends first or after `patienceMs`, 20 s by default. */
  until(holds: () => boolean, patienceMs?: number): Promise<void>;
  close(): void;
}

export async function openStream(url: string, headers: Record<string, string>): Promise<OpenStream> {
  const abort = new AbortController();
  const response = await fetch(url, { headers, signal: abort.signal });
  if (response.status !== 200) throw new Error(`stream: ${response.status} ${await response.text()}`);
  const frames: Frame[] = [];
  const comments: string[] = [];
  const watchers = new Set<() => void>();
  let lastId = '';
  let connected: Frame | undefined;
  let ended = false;
  let rest = '';

  function take(block: string): void {
    let id: string | undefined;
    let data = '';
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) comments.push(line);
      else if (line.startsWith('id: ')) id = line.slice(4);
      else if (line.startsWith('data: ')) data += line.slice(6);
    }
    if (id !== undefined) lastId = id;
    if (data === '') return;
    const frame = { id, ...JSON.parse(data) } as Frame;
    if (frame.type === 'connected') connected = frame;
    else frames.push(frame);
  }

  const read = async () => {
    const decoder = new TextDecoder();
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done) break;
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) take(block);
      for (const watch of watchers) watch();
    }
  };
  const end = () => {
    ended = true;
    for (const watch of watchers) watch();
  };
  read().then(end, end);

  function until(holds: () => boolean, patienceMs = 20_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () =>
          settle(new Error(`the stream did not bring it within ${patienceMs} ms; it brought ${frames.length} frames`)),
        patienceMs,
      );
      const settle = (error?: Error) => {
        clearTimeout(late);
        watchers.delete(watch);
        if (error) reject(error);
        else resolve();
      };
      const watch = () => {
        if (holds()) settle();
        else if (ended) settle(new Error('the stream ended'));
      };
      watchers.add(watch);
      watch();
    });
  }

  await until(() => connected !== undefined);
  return {
    frames,
    connected: connected?.data,
    comments,
    get lastId() {
      return lastId;
    },
    headers: response.headers,
    until,
    close: () => abort.abort(),
  };
}
