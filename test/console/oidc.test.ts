/** Signing in to the console through a real OpenID Connect provider, in Chromium. Needs TEST_CHROMIUM. */
import { expect } from 'chai';
import { needs } from '../support/needs.ts';
import { OIDC_CLIENT, OIDC_SECRET, startOidcProvider, type TestProvider } from '../support/oidc.ts';
import { startTestService, TEST_ADMIN, type TestService } from '../support/service.ts';
import { Browser, CHROMIUM, type Page } from './browser.ts';

describe('the console with an OpenID Connect provider, in Chromium', function () {
  this.timeout(180_000);
  let provider: TestProvider;
  let world: TestService;
  let browser: Browser;

  before(async function () {
    needs('TEST_CHROMIUM', CHROMIUM, this);
    provider = await startOidcProvider(() => [`${world.url}/`]);
    world = await startTestService({
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: OIDC_CLIENT,
      OIDC_CLIENT_SECRET: OIDC_SECRET,
      OIDC_NAME: 'Example ID',
      OIDC_ROLES: 'staff=operator',
    });
    browser = await Browser.open();
  });
  afterEach(() => browser?.closePages());
  after(async () => {
    await browser?.close();
    await world?.close();
    await provider?.stop();
  });

  /** Clicks the button of the console, and fills in the forms of the provider. */
  async function signInAs(page: Page, sub: string, path = '/'): Promise<void> {
    await page.goto(world.url + path);
    await page.click('button', 'Sign in with Example ID');
    await page.until('document.querySelector("input[name=login]")');
    await page.click('input[name=login]');
    await page.type(sub);
    await page.click('input[name=password]');
    await page.type('any');
    await page.press('Enter');
    await page.until('document.querySelector("input[value=consent]")');
    await page.click('button', 'Continue');
  }

  it('signs a user in, and leaves neither code nor state in the address', async () => {
    provider.accounts.set('sub-ida', { preferred_username: 'ida', name: 'Ida Moss', groups: ['staff'] });
    const page = await browser.page();
    await signInAs(page, 'sub-ida');
    await page.until("document.querySelector('main#view h1')");
    expect(await page.ask('location.href')).to.equal(`${world.url}/`);
    const me = await page.ask<{ user: Record<string, unknown> }>("fetch('/api/auth/me').then((one) => one.json())");
    expect(me.user).to.include({ username: 'ida', display_name: 'Ida Moss', role: 'operator', provider: 'oidc' });
    expect(await page.ask('document.cookie'), 'readable cookies').to.equal('');
    expect(page.faults).to.deep.equal([]);
  });

  it('shows the page that the user came for, and removes a redirect from the address of a user who is signed in', async () => {
    provider.accounts.set('sub-kim', { preferred_username: 'kim', groups: ['staff'] });
    const page = await browser.page();
    await signInAs(page, 'sub-kim', '/tasks?view=table');
    await page.until("document.querySelector('main#view h1')");
    expect(await page.ask('location.href')).to.equal(`${world.url}/tasks?view=table`);
    expect(await page.ask("document.querySelector('main#view h1').innerText")).to.equal('Tasks');
    for (const rest of ['?code=abc&state=def', '#id_token=abc']) {
      await page.goto('about:blank');
      await page.goto(`${world.url}/${rest}`);
      await page.until("document.querySelector('main#view h1')");
      await page.until(`location.href === ${JSON.stringify(`${world.url}/`)}`);
    }
    expect(page.faults).to.deep.equal([]);
  });

  it('names HTTPS and MC_COOKIE_SECURE if the browser keeps no cookie over plain HTTP', async () => {
    const page = await browser.page();
    await page.goto(world.url.replace('127.0.0.1', 'signalbox.test'));
    await page.click('input[name=username]');
    await page.type(TEST_ADMIN.username);
    await page.click('input[name=password]');
    await page.type(TEST_ADMIN.password);
    await page.press('Enter');
    await page.has('Open the console over HTTPS, or ask an operator to set MC_COOKIE_SECURE=0.');
  });

  it('explains why an account may not sign in', async () => {
    provider.accounts.set('sub-joe', { preferred_username: 'joe', groups: [] });
    const page = await browser.page();
    await signInAs(page, 'sub-joe');
    await page.has('None of the groups of your account may sign in here');
    await page.until('document.querySelector("input[name=username]")');
  });
});
