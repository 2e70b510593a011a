/**
 * The skeletons of UTS 39: texts with the same skeleton look the same to a reader.
 *
 * `confusables.json` is data of Unicode (confusables.txt), under the Unicode License v3: `LICENSE.unicode`.
 * `confusables.build.mjs` writes it for a new version.
 */
import data from './confusables.json' with { type: 'json' };

/** By character. Read at the first use, which takes a few milliseconds. */
let looks: ReadonlyMap<string, string> | undefined;

/** Groups: the common look-alike, then the characters that look like it; hexadecimal code points. */
function read(): ReadonlyMap<string, string> {
  const all = new Map<string, string>();
  const textOf = (hex: string) => String.fromCodePoint(Number.parseInt(hex, 16));
  for (const group of data.groups.join('').split(';')) {
    const [target = '', ...sources] = group.split(' ');
    if (sources.length === 0) continue;
    const look = target.split('+').map(textOf).join('');
    for (const source of sources) all.set(textOf(source), look);
  }
  return all;
}

const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;

/** The skeleton of a text, for comparison, not for display. */
export function skeleton(text: string): string {
  looks ??= read();
  let look = '';
  for (const character of text.normalize('NFD').replace(IGNORED, '')) look += looks.get(character) ?? character;
  return look.normalize('NFD');
}
