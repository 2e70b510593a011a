/** Whether a newer release is available. */
import { isNewer, releaseCheckResponse } from '../../shared/contract/releases.ts';
import { defineRoute } from '../http/route.ts';

export const releaseRoute = defineRoute({
  method: 'get',
  path: '/api/releases/check',
  noPast: 'releases are asked for',
  summary: 'Check whether there is a newer release',
  description:
    'Queries the feed of `RELEASES_URL`, at most once an hour. If the latest release is unknown, the response is still 200, and `error` gives the reason.',
  access: 'any',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  responses: { 200: { description: 'What is known', schema: releaseCheckResponse } },
  async handle({ services }) {
    const { current: currentVersion, mode: deploymentMode } = services.releases;
    const latest = await services.releases.latest();
    if ('error' in latest) {
      return {
        body: { updateAvailable: false, currentVersion, deploymentMode, error: latest.error },
        headers: { 'Cache-Control': 'private, max-age=600' },
      };
    }
    return {
      body: {
        updateAvailable: isNewer(latest.version, currentVersion),
        currentVersion,
        latestVersion: latest.version,
        releaseUrl: latest.url,
        releaseNotes: latest.notes,
        deploymentMode,
      },
      headers: { 'Cache-Control': 'private, max-age=3600' },
    };
  },
});
