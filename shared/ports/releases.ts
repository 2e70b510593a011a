/** The newest release of this software, according to the feed of the deployment. */
export interface Release {
  readonly version: string;
  readonly url: string;
  readonly notes: string;
}

export interface Releases {
  readonly current: string;
  readonly mode: 'docker' | 'bare-metal';
  /** Cached for an hour, a failure for ten minutes. Never rejects: a sentence says why the release is not known. */
  latest(): Promise<Release | { readonly error: string }>;
}
