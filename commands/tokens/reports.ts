/**
 * Reports of used tokens.
 *
 * A client may give a report an id: the same report sent again is then recognised, whichever process it reaches. Such
 * reports go to the ledger of their workspace, page by page. A page is one stream of bounded length: its ids are the
 * state on which an append is decided, so two processes cannot both add the same id, and a batch is one append. The
 * reports of all earlier pages are looked up in the read model, which has them before it names a page as the open one.
 *
 * Reports without an id cannot be recognised, so they are appended without a decision.
 */
import { createHash } from 'node:crypto';
import type { KnownReport, TokenDirectory, TokenKnowledge } from '../../queries/tokens/reports.ts';
import { costOf, type TokenCounts } from '../../shared/contract/tokens/costs.ts';
import { MAX_AHEAD_MS, MAX_LATE_MS } from '../../shared/contract/tokens/reports.ts';
import { AppError, conflict, invalidField, READ_MODEL_BEHIND, unavailable } from '../../shared/errors.ts';
import type { DomainEvent, EventDraft } from '../../shared/events/define.ts';
import {
  ledgerStream,
  reportsStream,
  type TokenReport,
  tokenPageFilled,
  tokensReported,
} from '../../shared/events/tokens/reports.ts';
import { newId } from '../../shared/ids.ts';
import { pause } from '../../shared/waiting.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { nextStep } from '../intents.ts';

/** Token usage as reported by a caller. */
export interface NewTokenReport extends TokenCounts {
  readonly id: string | null;
  readonly model: string;
  readonly session_id: string;
  readonly operation: string;
  /** Milliseconds. */
  readonly duration: number | null;
  readonly task_id: number | null;
  /** When the tokens were used, Unix ms; null: now. */
  readonly used_at: number | null;
}

export interface Reported {
  readonly report: KnownReport;
  /** False if the report had been recorded before. */
  readonly isNew: boolean;
}

/** Dependencies of reporting besides the log. */
export interface TokenReporting {
  readonly directory: TokenDirectory;
  /** Providers whose tokens are paid for in another way. */
  readonly subscribedProviders: readonly string[];
  /** Unix ms. */
  readonly now: () => number;
}

/** Reports or appends after which a page is full. A page is read again after a conflict. */
const PAGE_REPORTS = 5_000;
const PAGE_APPENDS = 200;
/** Maximum size of the reports in one append, characters as JSON; far below the limit of an append in bytes. */
const APPEND_CHARACTERS = 200_000;
/** Size of a report without its own texts, characters as JSON. */
const REPORT_CHARACTERS = 400;
/** How long the read model may take to name the open page, milliseconds. */
const PATIENCE_MS = 10_000;
/** Pause before another lookup when the read model names a page that is already full, milliseconds. */
const LOOK_MS = 5;

interface PageState {
  /** Digests of the reports' contents, by id. */
  readonly digests: ReadonlyMap<string, string>;
  readonly appends: number;
  readonly full: boolean;
}

export const tokenLedgerDecider = defineDecider<PageState>({
  kind: 'page of token reports',
  initial: { digests: new Map(), appends: 0, full: false },
  sizeOf: ({ digests }) => digests.size * 200,
  folds: [
    on(tokensReported, (state, { data }) => ({
      ...state,
      digests: new Map([...state.digests, ...data.reports.map((one) => [one.id, digestOf(one)] as const)]),
      appends: state.appends + 1,
    })),
    on(tokenPageFilled, (state) => ({ ...state, full: true })),
  ],
});

/** The page named by the read model is full, so the read model is too old to decide on. */
class PageFullError extends Error {}

/** Digest of the client's values; values looked up at the time of the report do not count. */
const digestOf = (one: Omit<NewTokenReport, 'id' | 'task_id'>): string =>
  createHash('sha256')
    .update(
      JSON.stringify([
        ...[one.model, one.session_id, one.operation, one.duration, one.used_at],
        ...[one.input_tokens, one.output_tokens, one.cache_read_tokens, one.cache_write_tokens],
      ]),
    )
    .digest('base64url');

const different = (id: string): AppError =>
  conflict(`The id ${id} was used for a different report; use a new id for each report.`, {
    code: 'TOKEN_REPORT_DIFFERS',
  });

/**
 * Adds those of the reports that are not on the page yet.
 *
 * @throws AppError 409 when the id of one was used for a different report
 * @throws PageFullError
 */
export function decideReports(state: PageState, page: number, reports: readonly TokenReport[]): EventDraft[] {
  if (state.full) throw new PageFullError();
  const added = new Map<string, TokenReport>();
  for (const report of reports) {
    const { id } = report;
    const twin = added.get(id);
    const known = twin ? digestOf(twin) : state.digests.get(id);
    if (known === undefined) added.set(id, report);
    else if (known !== digestOf(report)) throw different(id);
  }
  if (added.size === 0) return [];
  const drafts: EventDraft[] = [tokensReported.draft({ page, reports: [...added.values()] })];
  const isFull = state.digests.size + added.size >= PAGE_REPORTS || state.appends + 1 >= PAGE_APPENDS;
  return isFull ? [...drafts, tokenPageFilled.draft({ page })] : drafts;
}

/** Parts of a session's id that may belong to a name; names may have colons. */
const NAME_PARTS = 8;

/**
 * The names that a session's id begins with, the longest first: `ops:bot:cli`, `ops:bot` and `ops`. It belongs to the
 * first that is an agent's, else to the last.
 */
export function namesOfSession(sessionId: string): string[] {
  const parts = sessionId.split(':', NAME_PARTS);
  const names = parts
    .map((_, n) =>
      parts
        .slice(0, n + 1)
        .join(':')
        .trim(),
    )
    .reverse();
  const first = names.pop() || 'unknown';
  return [...names, first];
}

/** The name of the agent that a session belongs to. @param isAgent whether an agent has this name */
export function agentOfSession(sessionId: string, isAgent: (name: string) => boolean): string {
  const names = namesOfSession(sessionId);
  return names.find(isAgent) ?? (names.at(-1) as string);
}

/** The report as it is recorded: with its agent, task and cost. */
function completed(
  given: NewTokenReport,
  found: TokenKnowledge,
  speaksFor: string | null,
  { subscribedProviders }: TokenReporting,
): TokenReport {
  const { id, task_id: taskId, ...said } = given;
  const named = agentOfSession(given.session_id, (name) => found.agents.has(name));
  const agent = found.agents.get(named) ?? (speaksFor === null ? undefined : found.agents.get(speaksFor));
  return {
    ...said,
    id: id ?? newId(),
    agent_id: agent?.id ?? null,
    agent_name: agent?.name ?? named,
    task_id: taskId !== null && found.tasks.has(taskId) ? taskId : null,
    ...costOf(given, found.prices, subscribedProviders),
  };
}

/** @param field name of the field in an error @param now Unix ms @throws AppError 400 */
function requireRecent(used_at: number | null, field: string, now: number): void {
  if (used_at === null || (used_at >= now - MAX_LATE_MS && used_at <= now + MAX_AHEAD_MS)) return;
  const time = new Date(used_at).toISOString();
  throw invalidField(
    field,
    `must be from 90 days ago to 5 minutes ahead, in Unix seconds or milliseconds; it is ${time}`,
  );
}

/** Parts that fit into one append each. They depend only on the reports, so a repeated request has the same parts. */
function partsOf(reports: readonly NewTokenReport[]): NewTokenReport[][] {
  const parts: NewTokenReport[][] = [];
  let room = 0;
  for (const report of reports) {
    const characters = JSON.stringify(report).length + report.session_id.length + REPORT_CHARACTERS;
    if (characters > room || parts.length === 0) {
      parts.push([]);
      room = APPEND_CHARACTERS;
    }
    parts.at(-1)?.push(report);
    room -= characters;
  }
  return parts;
}

const recordedIn = (events: readonly DomainEvent[]): KnownReport[] =>
  events.flatMap(({ type, data, meta }) =>
    type === tokensReported.type
      ? (data.reports as TokenReport[]).map((one) => ({ ...one, at: one.used_at ?? meta.at }))
      : [],
  );

/**
 * Records reports, and waits until they can be read.
 *
 * @param speaksFor name of the agent that the caller speaks for: it owns reports of sessions that name no agent
 * @param pathOf path of a report in the request, by its index, before a field's name; default: none
 * @returns one result for each report, in the same order
 * @throws AppError 400 when a new report is too late or ahead, then none is recorded; 409 when an id was used for a
 *   different report, then earlier records stay
 */
export async function reportTokens(
  commands: Commands,
  context: CommandContext,
  reporting: TokenReporting,
  reports: readonly NewTokenReport[],
  speaksFor: string | null,
  pathOf: (index: number) => string = () => '',
): Promise<Reported[]> {
  const { workspace } = context.origin;
  const named = reports.filter(({ id }) => id !== null);
  const nameless = reports.filter(({ id }) => id === null);
  const lookUp = (part: readonly NewTokenReport[]) =>
    reporting.directory.lookUp(workspace, {
      reportIds: part.flatMap(({ id }) => id ?? []),
      agentNames: [
        ...part.flatMap(({ session_id }) => namesOfSession(session_id)),
        ...(speaksFor === null ? [] : [speaksFor]),
      ],
      taskIds: part.flatMap(({ task_id: taskId }) => taskId ?? []),
    });

  // All lookups are made before the first append.
  const parts: (readonly [part: NewTokenReport[], found: TokenKnowledge, isNamed: boolean])[] = [];
  for (const part of partsOf(nameless)) parts.push([part, await lookUp(part), false]);
  for (const part of partsOf(named)) parts.push([part, await lookUp(part), true]);
  const known = new Set(parts.flatMap(([, found]) => [...found.reports.keys()]));
  for (const [index, { id, used_at }] of reports.entries())
    if (id === null || !known.has(id)) requireRecent(used_at, `${pathOf(index)}timestamp`, reporting.now());
  const added: KnownReport[] = [];
  const byId = new Map<string, Reported>();
  for (const [part, found, isNamed] of parts) {
    if (isNamed) {
      for (const one of await reportNamed(part, found)) byId.set(one.report.id, one);
      continue;
    }
    const draft = tokensReported.draft({
      page: null,
      reports: part.map((one) => completed(one, found, speaksFor, reporting)),
    });
    const { events } = await commands.record(reportsStream(workspace), context, [draft]);
    // In a repeated request, these are the reports of the first run.
    added.push(...recordedIn(events));
  }
  return reports.map(({ id }) =>
    id === null ? { report: added.shift() as KnownReport, isNew: true } : (byId.get(id) as Reported),
  );

  async function reportNamed(part: readonly NewTokenReport[], lookedUp: TokenKnowledge): Promise<Reported[]> {
    const giveUpAt = Date.now() + PATIENCE_MS;
    const step = nextStep(context);
    for (let found = lookedUp; ; found = await lookUp(part)) {
      const isKnown = ({ id }: NewTokenReport) => found.reports.has(id ?? '');
      for (const one of part.filter(isKnown)) {
        const known = found.reports.get(one.id ?? '') as KnownReport;
        if (digestOf(known) !== digestOf(one)) throw different(known.id);
      }
      const known = [...found.reports.values()].map((report) => ({ report, isNew: false }));
      const unknown = part.filter((one) => !isKnown(one)).map((one) => completed(one, found, speaksFor, reporting));
      if (unknown.length === 0) return known;
      // Every part is one step of the request, whatever the number of its attempts.
      const attempt = { ...context, step };
      const stream = ledgerStream(workspace, found.page);
      try {
        const { events } = await commands.execute(tokenLedgerDecider, stream, attempt, (state) =>
          decideReports(state, found.page, unknown),
        );
        const now = recordedIn(events).map((report) => ({ report, isNew: true }));
        const ids = new Set(now.map(({ report }) => report.id));
        // Other requests have recorded these in the meantime.
        const others = unknown.flatMap(({ id }) => (ids.has(id) ? [] : id));
        const read = others.length > 0 ? await reporting.directory.lookUp(workspace, { reportIds: others }) : undefined;
        return [...known, ...now, ...[...(read?.reports.values() ?? [])].map((report) => ({ report, isNew: false }))];
      } catch (error) {
        const isPassing = error instanceof PageFullError || (error instanceof AppError && error.extras.code === 'BUSY');
        if (!isPassing) throw error;
        if (Date.now() > giveUpAt) {
          throw error instanceof AppError
            ? error
            : unavailable('Earlier reports cannot be read yet; try again in a moment.', { code: READ_MODEL_BEHIND });
        }
        await pause(LOOK_MS);
      }
    }
  }
}
