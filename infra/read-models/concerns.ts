/**
 * Which agents the rows concern that this process changes (`Table.concerns`), so that what is cached for other agents
 * stays current. Bounded: what was dropped counts as a change that concerns every agent.
 */
import type { Concerned } from '../../projections/projection.ts';
import type { ConcernedAgent } from '../../shared/ports/read-models.ts';

/** Maximum number of agents and workspaces, of all tables together. */
const REMEMBERED = 50_000;
/** Maximum number of texts of a table, and of their characters. */
const TEXTS = 2_000;
const CHARACTERS = 1_000_000;

/** Texts in which agents are named, the newest last. */
interface Texts {
  readonly list: { readonly workspace: number; readonly text: string; readonly position: number }[];
  characters: number;
  /** Position of the last text that was dropped. */
  floor: number;
}

export interface Concerns {
  /** @param table as `schema.table` */
  record(table: string, workspace: number, concerned: Concerned, position: number): void;
  /** Whether rows of these tables that concern an agent have changed after a position. */
  after(position: number, tables: readonly string[], agent: ConcernedAgent): boolean;
  clear(): void;
}

const ofAll = (table: string, workspace: number) => `${table} ${workspace}`;
const ofName = (table: string, workspace: number, name: string) => `${table} ${workspace} name ${name}`;
const ofId = (table: string, workspace: number, id: number) => `${table} ${workspace} id ${id}`;

export function createConcerns(): Concerns {
  /** Position of the last change; the oldest first. */
  const last = new Map<string, number>();
  const mentions = new Map<string, Texts>();
  /** Position of the last change of a table. Most heartbeats find none of theirs changed. */
  const changed = new Map<string, number>();
  let floor = 0;

  function note(table: string, key: string, position: number): void {
    changed.set(table, position);
    last.delete(key);
    last.set(key, position);
    if (last.size <= REMEMBERED) return;
    const [oldest, dropped] = last.entries().next().value as [string, number];
    last.delete(oldest);
    floor = Math.max(floor, dropped);
  }

  function mention(table: string, workspace: number, text: string, position: number): void {
    changed.set(table, position);
    const texts = mentions.get(table) ?? { list: [], characters: 0, floor: 0 };
    mentions.set(table, texts);
    texts.list.push({ workspace, text, position });
    texts.characters += text.length;
    while (texts.list.length > TEXTS || texts.characters > CHARACTERS) {
      const dropped = texts.list.shift() as Texts['list'][number];
      texts.characters -= dropped.text.length;
      texts.floor = dropped.position;
    }
  }

  function isMentioned(position: number, table: string, { workspace, names }: ConcernedAgent): boolean {
    const texts = mentions.get(table);
    if (!texts) return false;
    if (texts.floor > position) return true;
    for (let at = texts.list.length - 1; at >= 0; at--) {
      const one = texts.list[at] as Texts['list'][number];
      if (one.position <= position) return false;
      if (one.workspace === workspace && names.some((name) => one.text.includes(name))) return true;
    }
    return false;
  }

  return {
    record(table, workspace, concerned, position) {
      if (concerned === 'all') {
        note(table, ofAll(table, workspace), position);
        return;
      }
      const { names = [], ids = [], mentionedIn } = concerned;
      for (const name of names) if (name !== null) note(table, ofName(table, workspace, name), position);
      for (const id of ids) if (id !== null) note(table, ofId(table, workspace, id), position);
      if (mentionedIn !== undefined) mention(table, workspace, mentionedIn, position);
    },
    after(position, tables, agent) {
      if (floor > position) return true;
      const { workspace, names, ids } = agent;
      const isLater = (key: string) => (last.get(key) ?? 0) > position;
      return tables.some(
        (table) =>
          (changed.get(table) ?? 0) > position &&
          (isLater(ofAll(table, workspace)) ||
            names.some((name) => isLater(ofName(table, workspace, name))) ||
            ids.some((id) => isLater(ofId(table, workspace, id))) ||
            isMentioned(position, table, agent)),
      );
    },
    clear() {
      last.clear();
      mentions.clear();
      changed.clear();
      floor = 0;
    },
  };
}
