/** The feed of releases, in GitHub's format. Redirects are not followed; responses are read up to a limit. */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { AppError } from '../../shared/errors.ts';
import type { Release, Releases } from '../../shared/ports/releases.ts';
import { frontOf } from '../../shared/storable.ts';
import { VERSION } from '../version.ts';
import { type Gate, OutgoingError, parsed, request } from './request.ts';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1_000_000;
const KEPT_MS = 3_600_000;
const FAILURE_KEPT_MS = 600_000;
/** Characters of the notes. */
const MAX_NOTES = 20_000;

const FEED = z.object({
  tag_name: z.string().min(1).max(200),
  html_url: z.url().max(2_000),
  body: z.string().nullish(),
});

type Latest = Release | { readonly error: string };

/** @param now Unix ms */
export function createReleases(
  options: {
    readonly releasesUrl: string | undefined;
    readonly timeoutMs?: number;
    readonly current?: string;
    readonly gate?: Gate;
  },
  now: () => number = Date.now,
): Releases {
  const { releasesUrl, timeoutMs = TIMEOUT_MS, current = VERSION, gate } = options;
  let kept: { readonly until: number; readonly latest: Promise<Latest> } | undefined;
  async function ask(url: string): Promise<Latest> {
    try {
      return await read(url, timeoutMs, gate);
    } catch (error) {
      kept = { until: now() + FAILURE_KEPT_MS, latest: Promise.resolve({ error: reasonOf(error) }) };
      return kept.latest;
    }
  }
  return {
    current,
    mode: existsSync('/.dockerenv') ? 'docker' : 'bare-metal',
    async latest() {
      if (releasesUrl === undefined) {
        return { error: 'Releases are not looked for: set RELEASES_URL to the feed of the latest release.' };
      }
      try {
        await gate?.();
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        return { error: error.message };
      }
      // Concurrent callers share one request.
      if (!kept || kept.until <= now()) kept = { until: now() + KEPT_MS, latest: ask(releasesUrl) };
      return kept.latest;
    },
  };
}

class FeedError extends Error {}

async function read(url: string, timeoutMs: number, gate: Gate | undefined): Promise<Release> {
  const { status, text } = await request(url, {
    who: 'The release feed',
    via: 'proxy',
    headers: { accept: 'application/vnd.github+json, application/json', 'user-agent': `signalbox/${VERSION}` },
    timeoutMs,
    maxBytes: MAX_BYTES,
    gate,
  });
  if (status !== 200) throw new FeedError(`The release feed responded with status ${status}.`);
  const feed = FEED.safeParse(parsed(text));
  if (!feed.success) throw new FeedError('The release feed returned something other than a release.');
  const { tag_name, html_url, body } = feed.data;
  return { version: tag_name.replace(/^v(?=\d)/i, ''), url: html_url, notes: frontOf(body ?? '', MAX_NOTES) };
}

/** The reason as a sentence. @throws an error that is not a failure of the feed */
function reasonOf(error: unknown): string {
  if (error instanceof FeedError || error instanceof OutgoingError) return error.message;
  throw error;
}
