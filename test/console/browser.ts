/** Chromium for tests, spoken to by its own protocol over a pipe; nothing has to be installed beside it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** Path of the program; suites that need it are skipped without. */
export const CHROMIUM = process.env.TEST_CHROMIUM;

type Fields = Readonly<Record<string, unknown>>;
interface Message {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields;
  readonly error?: { readonly message: string };
}

const ANSWER_MS = 60_000;
const UNTIL_MS = 30_000;

export interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
}

/** In every page: its clock is so far behind that of the machine. */
const clockBehind = (ms: number): string => `{
  const Real = Date;
  const now = () => Real.now() - ${ms};
  globalThis.Date = class Date extends Real {
    constructor(...parts) { super(...(parts.length === 0 ? [now()] : parts)); }
    static now() { return now(); }
  };
}`;

export class Browser {
  readonly #process: ChildProcess;
  readonly #home: string;
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #listeners = new Map<string, (method: string, params: Fields) => void>();
  readonly #contexts = new Set<string>();
  readonly #behindMs: number;
  #last = 0;

  private constructor(process: ChildProcess, home: string, behindMs: number) {
    this.#process = process;
    this.#home = home;
    this.#behindMs = behindMs;
    let held = Buffer.alloc(0);
    (process.stdio[4] as Readable).on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      for (let end = held.indexOf(0); end >= 0; end = held.indexOf(0)) {
        this.#take(JSON.parse(held.toString('utf8', 0, end)) as Message);
        held = held.subarray(end + 1);
      }
    });
    // A write to a browser that has ended must not end the tests; a waiting call reaches its time-out.
    (process.stdio[3] as Writable).on('error', () => undefined);
  }

  /** @param behindMs how far the clock of its pages is behind that of the machine, milliseconds */
  static async open({ behindMs = 0 } = {}): Promise<Browser> {
    const home = await mkdtemp(join(tmpdir(), 'sbx-chromium-'));
    const process = spawn(
      CHROMIUM as string,
      [
        ...['--headless=new', '--remote-debugging-pipe', '--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
        ...['--no-first-run', '--disable-dev-shm-usage', '--disable-background-networking', `--user-data-dir=${home}`],
        // A name that browsers do not trust as they trust localhost.
        '--host-resolver-rules=MAP signalbox.test 127.0.0.1',
        'about:blank',
      ],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
    );
    await once(process, 'spawn');
    return new Browser(process, home, behindMs);
  }

  #take({ id, sessionId, method, params = {}, ...rest }: Message): void {
    if (id !== undefined) {
      this.#waiting.get(id)?.({ id, ...rest });
      this.#waiting.delete(id);
    } else if (sessionId !== undefined && method !== undefined) this.#listeners.get(sessionId)?.(method, params);
  }

  send(method: string, params: Fields = {}, sessionId?: string): Promise<Fields> {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`Chromium gave no answer to ${method}.`)), ANSWER_MS);
      this.#waiting.set(id, ({ result = {}, error }) => {
        clearTimeout(timer);
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result);
      });
      (this.#process.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** A page in a profile of its own: its cookies and storage are empty. */
  async page(look: Look = {}): Promise<Page> {
    const { browserContextId } = await this.send('Target.createBrowserContext');
    this.#contexts.add(browserContextId as string);
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId as string);
    this.#listeners.set(sessionId as string, (method, params) => page.noticed(method, params));
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await page.send(`${domain}.enable`);
    if (this.#behindMs > 0)
      await page.send('Page.addScriptToEvaluateOnNewDocument', { source: clockBehind(this.#behindMs) });
    await page.look(look);
    return page;
  }

  /** Closes every page; what one of them streamed or loaded no longer slows the next. */
  async closePages(): Promise<void> {
    for (const browserContextId of this.#contexts)
      await this.send('Target.disposeBrowserContext', { browserContextId });
    this.#contexts.clear();
    this.#listeners.clear();
  }

  async close(): Promise<void> {
    const ended = once(this.#process, 'exit');
    if (this.#process.exitCode === null) {
      this.#process.kill('SIGKILL');
      await ended;
    }
    await rm(this.#home, { recursive: true, force: true, maxRetries: 5 });
  }
}

export class Page {
  /** Errors of scripts, and what the browser refused, such as what the Content-Security-Policy forbids. */
  readonly faults: string[] = [];
  readonly #browser: Browser;
  readonly #session: string;

  constructor(browser: Browser, session: string) {
    this.#browser = browser;
    this.#session = session;
  }

  send(method: string, params: Fields = {}): Promise<Fields> {
    return this.#browser.send(method, params, this.#session);
  }

  noticed(method: string, params: Fields): void {
    if (method === 'Runtime.exceptionThrown') this.faults.push(JSON.stringify(params.exceptionDetails));
    if (method !== 'Log.entryAdded') return;
    const { level, text, source } = params.entry as { level: string; text: string; source: string };
    if (level === 'error' && source !== 'network') this.faults.push(text);
  }

  async look({ width = 1280, height = 860, dark = false }: Look): Promise<void> {
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 500 });
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
    await this.send('Emulation.setEmulatedMedia', { features });
  }

  async goto(url: string): Promise<void> {
    await this.send('Page.navigate', { url });
    await this.until("document.readyState === 'complete'");
  }

  /** The value of an expression in the page; a promise is waited for. @throws Error of the page */
  async ask<T = unknown>(expression: string): Promise<T> {
    const asked = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = (await this.send('Runtime.evaluate', asked)) as {
      result: { value: T };
      exceptionDetails?: { exception?: { description?: string }; text: string };
    };
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits for an expression to become true. @throws Error with the text of the page after half a minute */
  async until(expression: string): Promise<void> {
    const end = performance.now() + UNTIL_MS;
    for (;;) {
      const isTrue = await this.ask<boolean>(`Boolean(${expression})`).catch((error: Error) => {
        // A page that is being left has no answers.
        if (/context|navigat|null/i.test(error.message)) return false;
        throw error;
      });
      if (isTrue) return;
      if (performance.now() > end) {
        const text = await this.ask<string>('document.body.innerText');
        throw new Error(`This did not become true: ${expression}\n${text.slice(0, 2_000)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }

  has(text: string): Promise<void> {
    return this.until(`document.body.innerText.includes(${JSON.stringify(text)})`);
  }

  /** Clicks in the middle of the first element that a selector finds and whose text begins with `text`. */
  async click(selector: string, text = ''): Promise<void> {
    const find = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((one) => one.checkVisibility() && (one.innerText || one.ariaLabel || '').trim().startsWith(${JSON.stringify(text)}))`;
    await this.until(find);
    const { x, y } = await this.ask<{ x: number; y: number }>(
      `(() => { const one = ${find}; one.scrollIntoView({ block: 'center' }); const box = one.getBoundingClientRect(); return { x: box.x + box.width / 2, y: box.y + box.height / 2 }; })()`,
    );
    await this.mouse('mousePressed', x, y);
    await this.mouse('mouseReleased', x, y);
  }

  async mouse(type: 'mousePressed' | 'mouseMoved' | 'mouseReleased', x: number, y: number): Promise<void> {
    const buttons = type === 'mouseReleased' ? 0 : 1;
    await this.send('Input.dispatchMouseEvent', { type, x, y, button: 'left', buttons, clickCount: 1 });
  }

  /** Types into what has the focus. */
  async type(text: string): Promise<void> {
    await this.send('Input.insertText', { text });
  }

  /** Presses one key, such as `Tab`, `Enter` or `g`. */
  async press(key: string, modifiers = 0): Promise<void> {
    const codes: Readonly<Record<string, number>> = { Tab: 9, Enter: 13, Escape: 27, ArrowLeft: 37, ArrowRight: 39 };
    const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined;
    const sent = { key, code: key, windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0), modifiers };
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', ...sent, text });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...sent });
  }

  /** A picture of what is in the window, as PNG. */
  async picture(): Promise<Buffer> {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
    return Buffer.from(data as string, 'base64');
  }
}
