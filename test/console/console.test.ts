/** The console in Chromium, against the real service with a seeded fortnight. Needs TEST_CHROMIUM. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { needs } from '../support/needs.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { Browser, CHROMIUM, type Page } from './browser.ts';
import { type Clock, lastNoon, seed, sender, turnBack } from './seed.ts';
import { LOADED, signedIn, signIn, VIEWS } from './signed-in.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Scripts that read the checkpoint that the browser keeps, and store it. */
const KEPT = "const kept = JSON.parse(localStorage['signalbox-checkpoint']);";
const KEEP = "localStorage['signalbox-checkpoint'] = JSON.stringify(kept);";

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** What axe finds serious or worse on a page. */
async function barriers(page: Page): Promise<string[]> {
  await page.ask(AXE);
  const found = await page.ask<readonly Finding[]>('axe.run(document).then(({ violations }) => violations)');
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
}

describe('the console in Chromium', function () {
  this.timeout(600_000);
  let world: TestService;
  let browser: Browser;
  let clock: Clock | undefined;

  before(async function () {
    needs('TEST_CHROMIUM', CHROMIUM, this);
    clock = turnBack({ end: lastNoon() });
    world = await startTestService();
    await seed(world.url, world.adminKey, clock);
    browser = await Browser.open({ behindMs: clock.behindMs() });
  });
  afterEach(() => browser?.closePages());
  after(async () => {
    await browser?.close();
    await world?.close();
    clock?.restore();
  });

  it('shows every view without errors at 1280 and 360 px, and accessibly in light and dark', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    const problems: string[] = [];
    for (const [name, path, text] of VIEWS) {
      await page.look({});
      await page.goto(world.url + path);
      await page.has(text);
      await page.until(LOADED);
      for (const dark of [false, true]) {
        await page.look({ dark });
        problems.push(...(await barriers(page)).map((found) => `${name}, ${dark ? 'dark' : 'light'}: ${found}`));
      }
      await page.look({ width: 360, height: 740 });
      const wide = await page.ask<number>('document.documentElement.scrollWidth');
      if (wide > 360) problems.push(`${name}: ${wide} px wide in a window of 360`);
    }
    expect([...problems, ...page.faults]).to.deep.equal([]);
  });

  it('leads in three clicks to the cause of an agent’s higher cost yesterday, and shows its reports', async () => {
    const page = await signedIn(browser, world.url, 'viktor');
    await page.click('.rail a', 'Cost');
    await page.click('td a', 'ann');
    await page.has('Mostly anthropic/claude-opus-4-5');
    await page.until("document.querySelectorAll('[aria-label=Reports] tbody tr').length >= 20");
    await page.click('.because a', 'Rewrite the settlement engine');
    await page.until("document.querySelector('h1')?.innerText === 'Rewrite the settlement engine'");
    expect(page.faults).to.deep.equal([]);
  });

  it('shows the status of an agent over time, as its activities say', async () => {
    const page = await signedIn(browser, world.url, 'viktor');
    await page.goto(`${world.url}/agents/ann?hours=720`);
    await page.until("document.querySelector('.spans li')");
    await page.until(LOADED);
    const spans = await page.ask<string[]>(
      "[...document.querySelectorAll('.spans li:not(.before)')].map((one) => one.title)",
    );
    const recorded = (await sender(world.url, world.adminKey)(
      'GET',
      '/api/activities?type=agent_status_change&actor=ann&limit=200',
    )) as {
      activities: { metadata: { oldStatus: string; newStatus: string } }[];
    };
    expect(recorded.activities.length).to.be.greaterThan(3);
    // The check of silent agents may have changed it as well.
    expect(spans.length).to.be.greaterThan(recorded.activities.length);
    const shown = spans.map((title) => title.split(' from ')[0]);
    const { oldStatus } = recorded.activities.at(-1)?.metadata ?? {};
    expect(shown[0]).to.equal(oldStatus);
    expect(shown).to.include.members(recorded.activities.map(({ metadata }) => metadata.newStatus));
  });

  it('shows the chosen tab in a narrow window', async () => {
    const page = await signedIn(browser, world.url, 'admin', { width: 360, height: 740 });
    await page.goto(`${world.url}/admin/key`);
    await page.until(LOADED);
    const right = await page.ask<number>(
      "document.querySelector('.tabs [aria-current]').getBoundingClientRect().right",
    );
    expect(right).to.be.within(20, 360);
    expect(page.faults).to.deep.equal([]);
  });

  it('offers a viewer only actions that the role permits', async () => {
    const page = await signedIn(browser, world.url, 'viktor');
    const rooms = await page.ask<string[]>("[...document.querySelectorAll('.rail a')].map((one) => one.innerText)");
    expect(rooms).to.include('Cost').and.not.include.members(['Audit']).and.not.include.members(['Webhooks']);
    for (const path of ['/agents/ann', '/tasks/3', '/alerts', '/chat', '/admin']) {
      await page.goto(world.url + path);
      await page.until(LOADED);
      const writes = await page.ask<string[]>(
        "[...document.querySelectorAll('main button')].map((one) => one.innerText).filter((text) => /^(New|Change|Delete|Notify|Message|Review|Comment|Send|Backtest|Switch|Evaluate)/.test(text))",
      );
      expect(writes, path).to.deep.equal([]);
    }
    await page.goto(`${world.url}/audit`);
    await page.has('This view is for admins.');
    expect(page.faults).to.deep.equal([]);
  });

  it('shows changes of other clients live', async () => {
    const page = await signedIn(browser, world.url, 'mara');
    await page.click('.rail a', 'Agents');
    await page.has('Live');
    const send = sender(world.url, world.adminKey);
    await send('PUT', '/api/agents', { name: 'bert', last_activity: 'Counts the sleepers', status: 'busy' });
    await page.has('Counts the sleepers');
    expect(page.faults).to.deep.equal([]);
  });

  it('creates a task through the form and adds it to the browser history', async () => {
    const page = await signedIn(browser, world.url, 'mara');
    await page.click('.rail a', 'Tasks');
    await page.click('button', 'New task');
    await page.click('dialog input[name=title]');
    await page.type('Paint the signal');
    await page.click('dialog button', 'Create');
    await page.until("document.querySelector('h1')?.innerText === 'Paint the signal'");
    await page.ask('history.back()');
    await page.until("document.querySelector('h1')?.innerText === 'Tasks'");
    expect(page.faults).to.deep.equal([]);
  });

  it('shows every view read-only at a past moment chosen on the register, even after a reload', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.goto(`${world.url}/agents`);
    await page.until(LOADED);
    const strip = await page.ask<{ x: number; y: number; width: number }>(
      "(({ x, y, width }) => ({ x, y, width }))(document.querySelector('.strip').getBoundingClientRect())",
    );
    await page.mouse('mousePressed', strip.x + strip.width * 0.9, strip.y + 20);
    await page.mouse('mouseMoved', strip.x + strip.width * 0.6, strip.y + 20);
    await page.mouse('mouseReleased', strip.x + strip.width * 0.5, strip.y + 20);
    await page.has('You see the past.');
    await page.until(LOADED);
    const buttons = await page.ask<string>(
      "[...document.querySelectorAll('main button')].map((one) => one.innerText).join()",
    );
    expect(buttons).not.to.include('New agent');
    const shown = await page.ask<string>("new URLSearchParams(location.search).get('at')");
    expect(Date.parse(shown)).to.be.lessThan(Date.now() - 86_400_000);
    await page.goto(await page.ask<string>('location.href'));
    await page.has('You see the past.');
    await page.press('n');
    await page.until("!document.body.innerText.includes('You see the past.')");
    expect(page.faults).to.deep.equal([]);
  });

  it('marks alerts on the register and links them to their events and causes', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.goto(`${world.url}/?range=all`);
    await page.until("document.querySelector('.register .alerts a')");
    const titles = await page.ask<string[]>(
      "[...document.querySelectorAll('.register .alerts a')].map((one) => one.title)",
    );
    for (const title of titles) expect(title).to.match(/^Alert: (An agent is in error|Many tasks wait for review), /);
    await page.click('.register .alerts a');
    await page.has('Alert rule triggered');
    await page.has('What followed');
    expect(page.faults).to.deep.equal([]);
  });

  it('verifies the log with a button on the register', async () => {
    const page = await signedIn(browser, world.url, 'viktor');
    await page.click('.register button', 'Verify');
    await page.has('✓ The signature is valid');
    // A viewer may not compare checkpoints, so the kept one stays.
    await page.ask(`(() => { ${KEPT} kept.size = 1; ${KEEP} })()`);
    await page.click('dialog button', 'Verify again');
    await page.has('Only admins of the deployment can check');
    await page.has('✓ The signature is valid');
    expect(await page.ask<number>(`(() => { ${KEPT} return kept.size; })()`)).to.equal(1);
    expect(page.faults).to.deep.equal([]);
  });

  it('finds records by words, and events and moments by position', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.press('/');
    await page.until("document.querySelector('dialog input[type=search]')");
    await page.click('dialog input[type=search]');
    await page.type('settlement');
    await page.click('.results a', 'task');
    await page.until("document.querySelector('h1')?.innerText === 'Rewrite the settlement engine'");
    await page.press('/');
    await page.click('dialog input[type=search]');
    await page.type('40');
    await page.click('.results a', 'event');
    await page.has('What followed');
    await page.until("new URLSearchParams(location.search).get('open') === 'position:40'");
    expect(page.faults).to.deep.equal([]);
  });

  it('opens search, shortcuts and account in accessible dialogs, which Escape closes', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    for (const dark of [false, true]) {
      await page.look({ dark });
      for (const [name, open] of [
        ['Search', () => page.press('/').then(() => page.type('ledger'))],
        ['Shortcuts', () => page.press('?')],
        ['Your account', () => page.click('button.account')],
      ] as const) {
        await open();
        await page.until(`document.querySelector('dialog[open]')?.ariaLabel === '${name}'`);
        expect(await barriers(page), `${name}, ${dark ? 'dark' : 'light'}`).to.deep.equal([]);
        await page.press('Escape');
        await page.until("!document.querySelector('dialog[open]')");
      }
    }
    expect(page.faults).to.deep.equal([]);
  });

  it('opens a record with its history and offers the underlying request', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.goto(`${world.url}/alerts`);
    await page.click('td a', 'An agent is in error');
    await page.has('Alert rule created');
    const copied = await page.ask<string>(
      "[...document.querySelectorAll('.drawer button')].find((one) => one.innerText === 'Copy as curl').title",
    );
    expect(copied).to.equal(`curl -sS -H "x-api-key: $KEY" '${world.url}/api/alerts'`);
    await page.goto(`${world.url}/activity`);
    await page.click('td a');
    await page.has('Events of this second');
    await page.press('Escape');
    await page.until("!document.querySelector('.drawer')");
    expect(page.faults).to.deep.equal([]);
  });

  it('shows when it is offline, and catches up after reconnecting', async () => {
    const page = await signedIn(browser, world.url, 'mara');
    await page.click('.rail a', 'Agents');
    await page.has('Live');
    const offline = (is: boolean) =>
      page.send('Network.emulateNetworkConditions', {
        offline: is,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput: -1,
      });
    await offline(true);
    await page.has('Offline');
    const send = sender(world.url, world.adminKey);
    await send('PUT', '/api/agents', { name: 'cleo', last_activity: 'Waits for the line', status: 'busy' });
    await offline(false);
    await page.has('Live');
    await page.has('Waits for the line');
  });

  it('shows times in UTC, loads less than 150 kB, and keeps credentials out of reach of scripts', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.until(LOADED);
    const title = await page.ask<string>("document.querySelector('main time').title");
    expect(title).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(UTC\)/);
    const bytes = await page.ask<number>(
      "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource').filter((one) => one.name.includes('/console/'))].reduce((sum, one) => sum + one.encodedBodySize, 0)",
    );
    expect(bytes).to.be.within(20_000, 150_000);
    const kept = await page.ask<string>(
      'document.cookie + JSON.stringify(Object.keys(localStorage)) + JSON.stringify(Object.keys(sessionStorage))',
    );
    expect(kept).to.equal('[][]');
  });

  it('writes a backup and confirms it', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.goto(`${world.url}/admin/backups`);
    await page.click('main button', 'Back up now');
    await page.has('The backup is written: mc-backup-');
    await page.until("document.querySelector('[aria-label=Backups] td code')");
    expect(page.faults).to.deep.equal([]);
  });

  it('shows the differences between two moments', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString();
    await page.goto(`${world.url}/log/diff?from=${day(3)}&to=${day(2)}&resource=agents`);
    await page.until("document.querySelector('.change ins')");
    expect(page.faults).to.deep.equal([]);
  });

  it('verifies the log, and rejects one that does not continue the log seen before', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.goto(`${world.url}/log/verify`);
    await page.click('main button', 'Verify');
    await page.has('✓ The signature is valid');
    await page.click('main button', 'Verify again');
    await page.has('✓ Unchanged since');
    // The browser remembers another root for the same size: the log must have been altered.
    await page.ask(`(() => { ${KEPT} kept.root = btoa('\\0'.repeat(32)); ${KEEP} })()`);
    await page.click('main button', 'Verify again');
    await page.has('✕ Verification failed');
    await page.has('events were altered or removed');
    expect(page.faults).to.deep.equal([]);
  });

  it('can be used with the keyboard alone, from the sign-in to a task', async () => {
    const page = await browser.page();
    await signIn(page, world.url, 'mara', '/agents');
    await page.press('g');
    await page.press('t');
    await page.until("document.querySelector('h1')?.innerText === 'Tasks' && document.querySelector('a.card')");
    for (let n = 0; n < 60; n++) {
      await page.press('Tab');
      if (await page.ask("document.activeElement.classList.contains('card')")) break;
    }
    await page.press('Enter');
    await page.until("location.pathname.startsWith('/tasks/') && document.querySelector('.history')");
    expect(page.faults).to.deep.equal([]);
  });

  it('signs out, and keeps the address for the next sign-in', async () => {
    const page = await signedIn(browser, world.url, 'mara');
    await page.click('.account');
    await page.click('dialog button', 'Sign out');
    await page.until("document.querySelector('input[name=password]')");
    await signIn(page, world.url, 'viktor', '/cost?by=model');
    await page.has('Models: yesterday');
    expect(page.faults).to.deep.equal([]);
  });
});
