/**
 * Writes `confusables.json` from confusables.txt of a version of Unicode (UTS 39):
 * `node shared/confusables.build.mjs confusables.txt`. By character, what it looks like; both as hexadecimal code points.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const WIDTH = 120;
const short = (hex) => Number.parseInt(hex, 16).toString(16);

/** The data file: groups of a look-alike and the characters that look like it, in lines of `WIDTH` characters. */
export function dataOf(text) {
  const version = text.match(/^# Version: (\S+)/m)?.[1];
  if (!version) throw new Error('this is not confusables.txt of Unicode: it has no line "# Version:"');
  const groups = new Map();
  for (const line of text.split('\n')) {
    const [source, target] = line
      .split('#', 1)[0]
      .split(';')
      .map((part) => part.trim());
    if (!source || !target) continue;
    const look = target.split(/\s+/).map(short).join('+');
    groups.set(look, [...(groups.get(look) ?? []), short(source)]);
  }
  const lines = [''];
  for (const group of [...groups].map(([look, sources]) => [look, ...sources].join(' ')).sort()) {
    const word = `${group};`;
    if (lines.at(-1).length + word.length < WIDTH - 3) lines.push(lines.pop() + word);
    else lines.push(word);
  }
  return `${JSON.stringify({ version, groups: lines }, null, 0).replaceAll('",', '",\n')}\n`;
}

const [, script, file] = process.argv;
if (script === fileURLToPath(import.meta.url)) {
  if (!file) throw new Error('name the file confusables.txt');
  writeFileSync(
    new URL('confusables.json', import.meta.url),
    dataOf(readFileSync(file, 'utf8').replace(/^\uFEFF/, '')),
  );
}
