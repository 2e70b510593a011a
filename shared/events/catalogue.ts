/** Every event type that Signalbox writes, or that a release wrote: those that the files in `index.ts` export. */
import type { EventDefinition } from './define.ts';
import * as files from './index.ts';

export const isEvent = (exported: unknown): exported is EventDefinition =>
  typeof exported === 'object' && exported !== null && 'draft' in exported;

const definitions = Object.values(files).flatMap((file) => Object.values<unknown>(file).filter(isEvent));

export const catalogue: ReadonlyMap<string, EventDefinition> = new Map(
  definitions.map((definition) => [definition.type, definition]),
);
if (catalogue.size !== definitions.length) throw new Error('two event definitions share a type');
