/** What tests of the console share: signing in, and the views with what each shows when it is complete. */
import type { Browser, Look, Page } from './browser.ts';
import { PASSWORD } from './seed.ts';

export async function signIn(page: Page, url: string, username: string, path = '/'): Promise<void> {
  await page.goto(url + path);
  await page.click('input[name=username]');
  await page.type(username);
  await page.click('input[name=password]');
  await page.type(PASSWORD);
  await page.press('Enter');
  await page.until("document.querySelector('main#view h1')");
}

export async function signedIn(browser: Browser, url: string, username: string, look?: Look): Promise<Page> {
  const page = await browser.page(look);
  await signIn(page, url, username);
  return page;
}

/** Nothing is being loaded. */
export const LOADED = "document.querySelector('main#view h1') && !document.querySelector('.loading')";

/** Every view: its address, and a text that it shows of the seeded fortnight. */
export const VIEWS: readonly (readonly [name: string, path: string, text: string])[] = [
  ['overview', '/', 'Spend, last 24 hours'],
  ['agents', '/agents', 'fritz'],
  ['agent', '/agents/ann', 'tasks completed'],
  ['agent-cost', '/agents/ann?tab=cost', 'Mostly'],
  ['agent-attribution', '/agents/ann?tab=attribution', 'What it cost'],
  ['agent-texts', '/agents/ann?tab=texts', 'Working memory'],
  ['agent-keys', '/agents/ann?tab=keys', 'It has no keys.'],
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
  ['webhooks', '/webhooks', 'Pager'],
  ['chat', '/chat', 'Conversations'],
  ['log', '/log', 'Tenant created'],
  ['event', '/log?open=position:40', 'What followed'],
  ['verify', '/log/verify', 'Was the log altered?'],
  ['users', '/admin', 'mara'],
  ['requests', '/admin/requests', 'Nobody has asked'],
  ['workspaces', '/admin/workspaces', 'yours'],
  ['tenants', '/admin/tenants', 'Provisioning jobs'],
  ['schedules', '/admin/schedules', 'Run now'],
  ['backups', '/admin/backups', 'Back up now'],
  ['settings', '/admin/settings', 'retention'],
  ['gateways', '/admin/gateways', 'Gateways'],
  ['key', '/admin/key', 'Replace the key'],
];
