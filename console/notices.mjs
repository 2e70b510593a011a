/** Licences of packages whose code a bundle holds: their text goes where the code goes. */
import { readdirSync, readFileSync } from 'node:fs';

/** @param files paths of the sources of a bundle @returns a text with the licence of each package among them */
export function noticesOf(files, ...more) {
  const packages = new Set(files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []));
  const notices = [...packages].sort().map((directory) => {
    const { name, version, license } = JSON.parse(readFileSync(`${directory}/package.json`, 'utf8'));
    const found = readdirSync(directory).filter((file) => /^(licen[cs]e|notice)/i.test(file));
    const texts = found.map((file) => readFileSync(`${directory}/${file}`, 'utf8').trim());
    return [`${name} ${version} (${license})`, ...texts].join('\n\n');
  });
  return `${[...notices, ...more].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}
