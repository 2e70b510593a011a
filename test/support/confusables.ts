/**
 * Writes the table of `shared/confusables.ts` from confusables.txt of a new version of Unicode (UTS 39):
 * `node dist/test/support/confusables.js confusables.txt`. Each group has what some characters look like, then these
 * characters, as hexadecimal code points.
 */
import { readFileSync } from 'node:fs';

const WIDTH = 118;

/** The table, in lines. */
export function tableOf(text: string): string {
  const sources = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [source, target] = line
      .split('#', 1)
      .join('')
      .split(';')
      .map((part) => part.trim().toLowerCase());
    if (!source || !target) continue;
    const key = target.split(' ').map(short).join('+');
    sources.set(key, [...(sources.get(key) ?? []), short(source)]);
  }
  const groups = [...sources].map(([target, all]) => `${target} ${all.join(' ')}`).sort();
  const words = groups.join('; ').split(' ');
  const lines = [''];
  for (const word of words) {
    const line = lines.pop() ?? '';
    if (line.length + word.length < WIDTH) lines.push(`${line} ${word}`.trim());
    else lines.push(line, word);
  }
  return lines.join('\n');
}

const short = (hex: string): string => Number.parseInt(hex, 16).toString(16);

const [, , file] = process.argv;
if (file?.endsWith('confusables.txt')) console.log(tableOf(readFileSync(file, 'utf8').replace(/^\uFEFF/, '')));
