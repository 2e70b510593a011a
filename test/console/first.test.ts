/** A new deployment in Chromium: the first admin, the first screen, sign-in by a proxy and by Google. Needs TEST_CHROMIUM. */
import { expect } from 'chai';
import { needs } from '../support/needs.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { Browser, CHROMIUM } from './browser.ts';
import { sender } from './seed.ts';
import { signIn } from './signed-in.ts';

describe('the console of a new deployment', function () {
  this.timeout(300_000);
  let world: TestService;
  let browser: Browser;

  before(async function () {
    needs('TEST_CHROMIUM', CHROMIUM, this);
    world = await startTestService({
      // No user is created with a well-known password.
      AUTH_PASS: 'changeme',
      GOOGLE_CLIENT_ID: 'client-1.apps.example',
      MC_PROXY_AUTH_HEADER: 'x-remote-user',
      MC_PROXY_AUTH_TRUSTED_IPS: '127.0.0.1',
      MC_PROXY_AUTH_DEFAULT_ROLE: 'viewer',
    });
    browser = await Browser.open();
  });
  afterEach(() => browser?.closePages());
  after(async () => {
    await browser?.close();
    await world?.close();
  });

  it('creates the first admin and shows three working commands', async () => {
    const page = await browser.page();
    await page.goto(world.url);
    await page.has('Create its first admin.');
    await page.click('input[name=username]');
    await page.type('petra');
    await page.click('input[name=password]');
    await page.type('correct horse battery');
    await page.click('button', 'Create the admin');
    await page.has('Nothing is here yet');
    const commands = await page.ask<string[]>(
      "[...document.querySelectorAll('ol.first pre')].map((one) => one.innerText)",
    );
    expect(commands).to.have.length(3);
    const send = sender(world.url, world.adminKey);
    for (const command of commands) {
      const [, path = '', body = ''] = /SIGNALBOX(\/\S+)" -d '(.*)'$/.exec(command) ?? [];
      await send('POST', path, JSON.parse(body));
    }
    await page.until("document.querySelector('h1')?.innerText === 'Overview'");
    expect(page.faults).to.deep.equal([]);
  });

  it('admits users signed in by a proxy, and offers Google to others', async () => {
    const page = await browser.page();
    await page.send('Network.setExtraHTTPHeaders', { headers: { 'x-remote-user': 'paula' } });
    await page.goto(world.url);
    await page.until("document.querySelector('main#view h1')");
    expect(await page.ask('document.querySelector(".account").innerText')).to.include('paula');
    const other = await browser.page();
    await other.goto(world.url);
    await other.has('Sign in with Google');
    await signIn(other, world.url, 'petra');
    expect(other.faults).to.deep.equal([]);
  });
});
