/** What the console says is so: forms, past and present, the register, costs of a first day. Needs TEST_CHROMIUM. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { needs } from '../support/needs.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { Browser, CHROMIUM, type Page } from './browser.ts';
import { PASSWORD, sender } from './seed.ts';
import { LOADED, signedIn } from './signed-in.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe('what the console says', function () {
  this.timeout(600_000);
  let world: TestService;
  let browser: Browser;
  let send: ReturnType<typeof sender>;
  let task: number;
  let agent: number;

  before(async function () {
    needs('TEST_CHROMIUM', CHROMIUM, this);
    world = await startTestService();
    send = sender(world.url, world.adminKey);
    await send('POST', '/api/auth/users', {
      username: 'mara',
      role: 'operator',
      display_name: 'Mara',
      password: PASSWORD,
    });
    ({
      agent: { id: agent },
    } = (await send('POST', '/api/agents', { name: 'ann', role: 'coder' })) as { agent: { id: number } });
    for (let n = 0; n < 60; n++) await send('PUT', `/api/agents/${agent}`, { status: n % 2 ? 'busy' : 'idle' });
    ({
      task: { id: task },
    } = (await send('POST', '/api/tasks', {
      ...{ title: 'Mend the roof', description: 'It leaks.', status: 'review', assigned_to: 'ann' },
    })) as { task: { id: number } });
    const tokens = { model: 'claude-opus-4-5', sessionId: 'ann:cli', inputTokens: 1_000_000, outputTokens: 0 };
    await send('POST', '/api/tokens', tokens);
    browser = await Browser.open();
  });
  afterEach(() => browser?.closePages());
  after(async () => {
    await browser?.close();
    await world?.close();
  });

  const taskNow = async () => ((await send('GET', `/api/tasks/${task}`)) as { task: Record<string, unknown> }).task;
  const set = (page: Page, selector: string, value: string) =>
    page.ask(
      `(() => { const one = document.querySelector(${JSON.stringify(selector)}); one.value = ${JSON.stringify(value)}; })()`,
    );

  it('is what a form has changed: emptied fields are sent, and nothing is not "Saved"', async () => {
    const page = await signedIn(browser, world.url, 'mara');
    await page.goto(`${world.url}/tasks/${task}`);
    await page.click('main button', 'Change');
    await page.click('dialog button', 'Save');
    await page.has('Nothing was changed.');
    await page.click('main button', 'Change');
    await set(page, 'dialog [name=assigned_to]', '');
    await set(page, 'dialog [name=description]', '');
    await page.click('dialog button', 'Save');
    await page.has('Saved: Description, Agent.');
    const { assigned_to, description } = await taskNow();
    expect(assigned_to ?? '').to.equal('');
    expect(description ?? '').to.equal('');
    expect(page.faults).to.deep.equal([]);
  });

  it('is also in a file for spreadsheets, where the API has one', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    for (const [view, columns] of [
      ['tasks', 'id,title'],
      ['agents', 'id,name'],
      ['activity', 'id,type'],
      ['audit', 'id,action'],
      ['cost', 'timestamp'],
    ] as const) {
      await page.goto(`${world.url}/${view}`);
      await page.until("[...document.querySelectorAll('main a[download]')].some((a) => a.innerText === 'CSV')");
      const file = await page.ask(`(async () => {
        const bytes = new Uint8Array(await (await fetch(document.querySelector('main a[download]').href)).arrayBuffer());
        return [bytes.slice(0, 3).join(), new TextDecoder().decode(bytes).split('\\n')[0]];
      })()`);
      const [mark, head] = file as [string, string];
      expect(mark, view).to.equal('239,187,191');
      expect(head.slice(0, columns.length).toLowerCase(), view).to.equal(columns);
    }
    expect(page.faults).to.deep.equal([]);
  });

  it('is not what another client changes while a form is open', async () => {
    const page = await signedIn(browser, world.url, 'mara');
    await page.goto(`${world.url}/tasks/${task}`);
    await page.has('Live');
    await page.click('main button', 'Change');
    await set(page, 'dialog [name=priority]', 'low');
    await send('PUT', `/api/tasks/${task}`, { priority: 'critical', title: 'Mend the whole roof' });
    await page.until("document.querySelector('h1')?.innerText === 'Mend the whole roof'");
    expect(await page.ask("document.querySelector('dialog [name=priority]').value")).to.equal('low');
    await page.click('dialog button', 'Save');
    await page.has('Saved: Priority.');
    expect(await taskNow()).to.include({ title: 'Mend the whole roof', priority: 'low' });
  });

  it('is who reviewed, and why an approval leaves the task as it is', async () => {
    const page = await signedIn(browser, world.url, 'mara');
    await page.goto(`${world.url}/tasks/${task}`);
    await page.click('main button', 'Review');
    await page.click('dialog textarea');
    await page.type('Dry.');
    await page.click('dialog button', 'Record');
    await page.has('only an approval by an admin');
    const admin = await signedIn(browser, world.url, 'admin');
    await admin.goto(`${world.url}/tasks/${task}`);
    await admin.click('main button', 'Review');
    await admin.click('dialog textarea');
    await admin.type('Measured.');
    await admin.click('dialog button', 'Record');
    await admin.has('by admin for aegis');
    await admin.has('by mara');
    expect((await taskNow()).status).to.equal('done');
  });

  it('is the cost of a first day, without a failed read', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.ask(`{ const real = fetch; globalThis.refused = []; globalThis.fetch = async (...asked) => {
      const response = await real(...asked);
      if (response.status >= 400) refused.push(response.status + ' ' + response.url);
      return response;
    }; } 0`);
    await page.click('.rail a', 'Cost');
    await page.until("document.querySelector('.why .big, main .big')?.innerText === '$5.00'");
    expect(await page.ask('refused')).to.deep.equal([]);
  });

  it('is the whole window of an agent, which fits a narrow screen after 60 changes of status', async () => {
    const page = await signedIn(browser, world.url, 'admin', { width: 390, height: 800 });
    await page.goto(`${world.url}/agents/${agent}?hours=168`);
    await page.until("document.querySelector('.spans li')");
    await page.until(LOADED);
    expect(await page.ask<number>('document.documentElement.scrollWidth')).to.equal(390);
    await page.has('since the agent began');
    const bars = await page.ask<number>('document.querySelectorAll(\'[aria-label="Activities by hour"] .bar\').length');
    expect(bars).to.be.within(55, 72);
    await page.goto(world.url);
    await page.until('document.querySelectorAll(\'[aria-label="US dollars by hour"] .bar\').length >= 24');
    for (const status of ['failed', 'awaiting owner', 'backlog']) await page.has(status);
  });

  it('is the moment under the pointer, which the hand shows once it is chosen', async () => {
    const page = await signedIn(browser, world.url, 'admin', { width: 1280, height: 800 });
    await page.until(LOADED);
    const box = () =>
      page.ask<{ x: number; y: number; width: number }>(
        "(({ x, y, width }) => ({ x, y, width }))(document.querySelector('.strip').getBoundingClientRect())",
      );
    await page.goto(`${world.url}/?range=7d`);
    await page.until("document.querySelectorAll('.strip .ticks span').length > 5");
    const ticks = await page.ask<string[]>(
      "[...document.querySelectorAll('.strip .ticks span')].map((one) => one.innerText)",
    );
    expect(ticks.at(-1)).to.equal('now');
    expect(ticks[1]).to.match(/^\d+ [A-Z][a-z]{2}$/);
    const { x: left, width, y } = await box();
    const third = left + width / 3;
    await page.mouse('mouseMoved', third, y + 20);
    await page.until("/\\d{4}, \\d\\d:\\d\\d:\\d\\d/.test(document.querySelector('.strip .under')?.innerText)");
    await page.mouse('mousePressed', third, y + 20);
    await page.mouse('mouseReleased', third, y + 20);
    await page.has('You see the past.');
    expect((await box()).width).to.equal(width);
    expect(await page.ask("Boolean(document.querySelector('[aria-label=Service]'))"), 'health of now').to.equal(false);
    const week = await page.ask<number>(
      "(({ x, width }) => x + width / 2)(document.querySelector('.hand').getBoundingClientRect())",
    );
    expect(Math.abs(week - third)).to.be.at.most(2);
    await page.click('.register button', 'Now');
    await page.click('.register .said input');
    await page.type('4');
    await page.press('Enter');
    await page.has('As of position 4');
    expect(page.faults).to.deep.equal([]);
  });

  it('of a difference has dates, and no link inside a button', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    const { events } = (await send('GET', '/api/history/events?limit=1')) as { events: { at: number }[] };
    const from = new Date(((events[0]?.at ?? 0) + 1) * 1_000).toISOString();
    await page.goto(`${world.url}/log/diff?from=${from}&to=${new Date(Date.now() - 1_000).toISOString()}`);
    await page.until("document.querySelector('.change')");
    await page.has(`${new Date().getFullYear()}, `);
    await page.ask(AXE);
    const found = await page.ask<{ id: string }[]>('axe.run(document).then(({ violations }) => violations)');
    expect(found.map(({ id }) => id)).not.to.include('nested-interactive');
  });

  it('recovers by itself where a read has failed, and shows a failing receiver without a reload', async () => {
    const page = await signedIn(browser, world.url, 'admin');
    await page.has('Live');
    const offline = (is: boolean) =>
      page.send('Network.emulateNetworkConditions', {
        ...{ offline: is, latency: 0, downloadThroughput: -1, uploadThroughput: -1 },
      });
    await offline(true);
    await page.click('.rail a', 'Webhooks');
    await page.has('That did not work');
    await send('POST', '/api/webhooks', {
      name: 'Pager',
      url: 'https://pager.invalid/hook',
      events: ['activity.task_updated'],
    });
    await offline(false);
    await page.has('Pager');
    await page.until("!document.body.innerText.includes('That did not work')");
    await send('PUT', `/api/tasks/${task}`, { title: 'Mend it again' });
    await page.has('failed in a row');
  });
});
