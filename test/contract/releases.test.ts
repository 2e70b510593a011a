import { expect } from 'chai';
import { releaseCheckResponse } from '../../shared/contract/releases.ts';
import { fixture } from '../support/fixture.ts';
import { listen } from '../support/listen.ts';
import { conforms } from '../support/worlds/agents.ts';
import { startAuthWorld } from '../support/worlds/auth.ts';

/** A feed that has one release, far ahead. */
async function startFeed() {
  const release = {
    tag_name: 'v9999.1.0',
    html_url: 'https://example.org/releases/9999.1.0',
    body: 'Everything is new',
  };
  return listen((_req, res) => res.end(JSON.stringify(release)));
}

describe('/api/releases/check', () => {
  const feed = fixture(startFeed);
  const world = fixture(() => startAuthWorld({ RELEASES_URL: feed.url }));

  it('returns the newer version, and may be cached for an hour', async () => {
    const reply = await world.ask('GET', '/api/releases/check', { as: world.adminKey });
    conforms(releaseCheckResponse, reply);
    expect(reply.body).to.include({
      ...{ updateAvailable: true, latestVersion: '9999.1.0', releaseNotes: 'Everything is new' },
      releaseUrl: 'https://example.org/releases/9999.1.0',
    });
    expect(reply.body.currentVersion).to.match(/^\d+\.\d+\.\d+/);
    expect(reply.body).not.to.have.property('error');
    expect(reply.headers.get('cache-control')).to.equal('private, max-age=3600');
  });
});
