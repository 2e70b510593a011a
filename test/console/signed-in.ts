/** What tests of the console share: signing in, and the views with what each shows when it is complete. */
import type { Browser, Look, Page } from './browser.ts';
import { PASSWORD } from './seed.ts';

const SHOWN = "document.querySelector('main#view h1')";

export async function signIn(page: Page, url: string, username: string, path = '/'): Promise<void> {
  await page.goto(url + path);
  await page.click('input[name=username]');
  await page.type(username);
  await page.click('input[name=password]');
  await page.type(PASSWORD);
  await page.press('Enter');
  await page.until(SHOWN);
}

/** Session cookies by service and user: signing in is allowed five times a minute. */
const cookies = new Map<string, Promise<string>>();

async function cookieOf(url: string, username: string): Promise<string> {
  const response = await fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password: PASSWORD }),
    signal: AbortSignal.timeout(30_000),
  });
  const [cookie] = response.headers.getSetCookie();
  if (!cookie) throw new Error(`Signing in as ${username}: ${response.status} ${await response.text()}`);
  return cookie.slice(0, cookie.indexOf(';'));
}

/** A page of a user who signed in before, at the overview. */
export async function signedIn(browser: Browser, url: string, username: string, look?: Look): Promise<Page> {
  const key = `${url} ${username}`;
  const known = cookies.get(key) ?? cookieOf(url, username);
  cookies.set(key, known);
  const [name, value] = (await known).split(/=(.*)/);
  const page = await browser.page(look);
  await page.send('Network.setCookie', { url, name, value, httpOnly: true, sameSite: 'Strict' });
  await page.goto(url);
  await page.until(SHOWN);
  return page;
}

/** Nothing is being loaded. */
export const LOADED = `${SHOWN} && !document.querySelector('.loading, .old')`;

/** Every view: its address, and a text that it shows of the seeded fortnight. */
export const VIEWS: readonly (readonly [name: string, path: string, text: string])[] = [
  ['overview', '/', 'Spend, last 24 hours'],
  ['agents', '/agents', 'fritz'],
  ['agent', '/agents/ann', 'Status over time'],
  ['agent-week', '/agents/ann?hours=168', 'tasks completed'],
  ['agent-cost', '/agents/ann?tab=cost', 'Mostly'],
  ['agent-reports', '/cost?agent=ann', 'Reports'],
  ['agent-attribution', '/agents/ann?tab=attribution', 'What it cost'],
  ['agent-texts', '/agents/ann?tab=texts', 'Working memory'],
  ['agent-keys', '/agents/ann?tab=keys', 'This agent has no keys.'],
  ['tasks-board', '/tasks', 'quality review'],
  ['tasks-table', '/tasks?view=table', 'LED-'],
  ['task', '/tasks/3', 'History'],
  ['activity', '/activity', 'Last 7 days'],
  ['audit', '/audit', 'Trail'],
  ['cost', '/cost', 'What changed'],
  ['cost-model', '/cost?by=model', 'claude-opus'],
  ['cost-project', '/cost?by=project', 'Ledger'],
  ['prices', '/cost?by=prices', 'claude-opus'],
  ['alerts', '/alerts', 'An agent is in error'],
  ['alert', '/alerts?open=alert:1', 'History'],
  ['backtest', '/alerts?backtest=1', 'Run the backtest'],
  ['webhooks', '/webhooks', 'Pager'],
  ['chat', '/chat', 'Conversations'],
  ['log', '/log', 'Newest events'],
  ['log-oldest', '/log?after=0', 'Tenant created'],
  ['event', '/log?open=position:40', 'What followed'],
  ['verify', '/log/verify', 'Was the log altered?'],
  ['users', '/admin', 'mara'],
  ['requests', '/admin/requests', 'No requests.'],
  ['workspaces', '/admin/workspaces', 'yours'],
  ['tenants', '/admin/tenants', 'Provisioning jobs'],
  ['schedules', '/admin/schedules', 'Run now'],
  ['backups', '/admin/backups', 'Back up now'],
  ['settings', '/admin/settings', 'retention'],
  ['gateways', '/admin/gateways', 'Gateways'],
  ['key', '/admin/key', 'Replace the key'],
];
