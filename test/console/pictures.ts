/** Takes a picture of each view, wide and narrow, light and dark: `node dist/test/console/pictures.js URL FOLDER [names]`. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Browser } from './browser.ts';
import { LOADED, signedIn, VIEWS } from './signed-in.ts';

const [url = 'http://127.0.0.1:3100', folder = 'pictures', names] = process.argv.slice(2);
const chosen = VIEWS.filter(([name]) => names === undefined || names.split(',').includes(name));
await mkdir(folder, { recursive: true });
const browser = await Browser.open();
try {
  const page = await signedIn(browser, url, 'admin');
  const before = new Date(Date.now() - 2 * 86_400_000).toISOString();
  for (const [name, path, text] of [...chosen, ['past', `/?at=${before}`, 'You see the past'] as const]) {
    await page.look({});
    await page.goto(url + path);
    await page.has(text).catch((error: Error) => console.error(name, error.message));
    await page.until(LOADED).catch((error: Error) => console.error(name, error.message));
    for (const width of [1280, 360]) {
      for (const dark of [false, true]) {
        await page.look({ width, height: width === 360 ? 740 : 860, dark });
        await page.ask('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
        await writeFile(join(folder, `${name}-${width}-${dark ? 'dark' : 'light'}.png`), await page.picture());
      }
    }
    const wide = await page.ask<number>('document.documentElement.scrollWidth');
    if (wide > 360) console.error(`${name}: ${wide} wide at 360`);
  }
  for (const fault of page.faults) console.error(fault);
} finally {
  await browser.close();
}
