/** Whether there is a newer release. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { releaseCheckAnswer } from '../../shared/contract/releases.ts';
import { conforms } from '../support/worlds/agents.ts';
import type { AuthWorld } from '../support/worlds/auth.ts';

/** A feed that has one release, far ahead. */
export async function startFeed(): Promise<{ readonly server: Server; readonly url: string }> {
  const release = {
    tag_name: 'v9999.1.0',
    html_url: 'https://example.org/releases/9999.1.0',
    body: 'Everything is new',
  };
  const server = createServer((_req, res) => res.end(JSON.stringify(release)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/latest` };
}

export function describeReleases(service: () => AuthWorld): void {
  describe('/api/releases/check', () => {
    it('says what is newer, and may be kept for an hour', async () => {
      const world = service();
      const reply = await world.ask('GET', '/api/releases/check', { as: world.adminKey });
      conforms(releaseCheckAnswer, reply);
      expect(reply.body).to.include({
        ...{ updateAvailable: true, latestVersion: '9999.1.0', releaseNotes: 'Everything is new' },
        releaseUrl: 'https://example.org/releases/9999.1.0',
      });
      expect(reply.body.currentVersion).to.match(/^\d+\.\d+\.\d+/);
      expect(reply.body).not.to.have.property('error');
      expect(reply.headers.get('cache-control')).to.equal('public, max-age=3600');
    });
  });
}
