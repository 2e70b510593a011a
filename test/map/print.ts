/** `npm run map`. */
import { deviations, printed, sources } from './map.ts';

const files = sources();
console.log(printed(files));
for (const sentence of deviations(files)) console.error(sentence);
