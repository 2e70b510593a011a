/**
 * Replays decisions: folds every stream of a decider from the log with the code of this program, repeats the decision
 * of each append whose command is known, and compares saved states with folded ones. Writes nothing.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Append, decideAgain, type Replayable } from '../../commands/replayable.ts';
import { foldOne, snapshotKind } from '../../commands/states.ts';
import type { EventStore } from '../../shared/event-store.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { BEGINNING, type Position } from '../../shared/ports/event-log.ts';
import type { Snapshots } from '../../shared/ports/snapshots.ts';

export interface DecisionStores {
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly snapshots: Pick<Snapshots, 'find'>;
}

export interface DecisionOptions {
  /** Appends before this position are folded, but their decisions are not repeated. */
  readonly from?: Position | undefined;
  /** Where the replay ends; default: the end of the log. */
  readonly until?: Position | undefined;
  /** Maximum number of listed findings; default 5. */
  readonly examples?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: {
    readonly phase: string;
    readonly position: Position;
    readonly target: Position;
    readonly events: number;
  }) => void;
}

export interface Finding {
  readonly position: Position;
  readonly stream: string;
  /** Type and id of the first event of the append. */
  readonly event: string;
  readonly kind: 'refused' | 'otherwise' | 'not folded' | 'saved state';
  /** The reason of a refusal; otherwise the decision now, or the fields of the state that differ. */
  readonly what: string;
}

export interface DecisionReplay {
  readonly decider: string;
  readonly streams: number;
  readonly events: number;
  /** Numbers of appends. */
  readonly same: number;
  readonly refused: number;
  readonly otherwise: number;
  readonly notDecidedAgain: number;
  /** Number of streams whose events the fold does not accept. */
  readonly notFolded: number;
  /** Saved states that were compared, and those that differ. */
  readonly savedStates: number;
  readonly savedStatesDiffering: number;
  /** Findings with the lowest positions. */
  readonly findings: readonly Finding[];
}

type Counts = { -readonly [K in Exclude<keyof DecisionReplay, 'decider' | 'findings'>]: number };

/** @throws errors of the log; the signal's reason; errors of a decision other than refusals */
export async function replayDecider(
  { store, snapshots }: DecisionStores,
  replayed: Replayable,
  options: DecisionOptions = {},
): Promise<DecisionReplay> {
  const { decider, prefix, name } = replayed;
  const { from = BEGINNING, until = await store.log.head(), examples = 5, signal, onProgress } = options;
  const findings: Finding[] = [];
  const counts: Counts = {
    streams: 0,
    events: 0,
    same: 0,
    refused: 0,
    otherwise: 0,
    notDecidedAgain: 0,
    notFolded: 0,
    savedStates: 0,
    savedStatesDiffering: 0,
  };
  const kind = snapshotKind(decider);

  function find(event: DomainEvent, found: Pick<Finding, 'kind' | 'what'>): void {
    const { position, stream, type, id } = event;
    findings.push({ position, stream, event: `${type} ${id}`, ...found });
    if (findings.length <= examples) return;
    findings.sort((a, b) => a.position - b.position);
    findings.length = examples;
  }

  function decide(state: unknown, append: Append): void {
    const first = append[0] as DomainEvent;
    if (first.position < from) return;
    const outcome = decideAgain(replayed, state, append);
    if (outcome.kind === 'same') counts.same++;
    else if (outcome.kind === 'not decided again') counts.notDecidedAgain++;
    else if (outcome.kind === 'refused') {
      counts.refused++;
      find(first, { kind: 'refused', what: outcome.reason });
    } else {
      counts.otherwise++;
      find(first, { kind: 'otherwise', what: differenceOf(append, outcome.would) });
    }
  }

  async function replayStream(stream: string): Promise<void> {
    const saved = kind === undefined ? undefined : await snapshots.find(stream, kind);
    let state = decider.initial;
    let append: DomainEvent[] = [];
    let before = state;
    for await (const batch of store.log.readStream(stream)) {
      signal?.throwIfAborted();
      for (const logged of batch) {
        if (logged.position > until) return;
        const event = await store.decode(logged, true);
        counts.events++;
        append.push(event);
        try {
          state = foldOne(decider, state, event);
        } catch (error) {
          counts.notFolded++;
          find(event, { kind: 'not folded', what: error instanceof Error ? error.message : String(error) });
          return;
        }
        if (saved?.revision === event.revision) {
          counts.savedStates++;
          const fields = fieldsThatDiffer(saved.state, state);
          if (fields.length > 0) {
            counts.savedStatesDiffering++;
            find(event, { kind: 'saved state', what: `version ${decider.snapshotVersion}: ${fields.join(', ')}` });
          }
        }
        if (event.meta.rest !== undefined) continue;
        decide(before, append);
        before = state;
        append = [];
      }
    }
  }

  let read = 0;
  for await (const page of store.log.readAll()) {
    signal?.throwIfAborted();
    for (const { stream, revision, position } of page) {
      if (position > until || revision !== 0 || !stream.startsWith(prefix)) continue;
      counts.streams++;
      await replayStream(stream);
    }
    read += page.length;
    const position = page.at(-1)?.position ?? until;
    onProgress?.({ phase: `deciding again: ${name}`, position, target: until, events: read });
    if (position >= until) break;
  }
  return { decider: name, ...counts, findings: findings.toSorted((a, b) => a.position - b.position) };
}

const asStored = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Only names, because values may be personal or secret. */
function fieldsThatDiffer(one: unknown, other: unknown): string[] {
  const [a, b] = [asStored(one), asStored(other)];
  if (!isObject(a) || !isObject(b)) return isDeepStrictEqual(a, b) ? [] : ['the whole'];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((name) => !isDeepStrictEqual(a[name], b[name]));
}

/** How the decision differs now, without values. */
function differenceOf(append: Append, would: readonly Pick<DomainEvent, 'type' | 'data'>[]): string {
  const types = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type).join(', ');
  if (types(append) !== types(would)) return `${types(would) || 'nothing'} instead of ${types(append)}`;
  return would
    .flatMap(({ type, data }, n) => {
      const fields = fieldsThatDiffer(append[n]?.data, data);
      return fields.length > 0 ? [`${type} with another ${fields.join(', ')}`] : [];
    })
    .join('; ');
}
