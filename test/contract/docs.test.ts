/** /api/docs and /docs through HTTP: public, whole, without help from any other server, and cheap to ask for again. */
import { expect } from 'chai';
import { fixture } from '../support/fixture.ts';
import { call, startTestService } from '../support/service.ts';

describe('Docs', () => {
  const service = fixture(startTestService);

  const anonymous = { 'x-api-key': '', 'content-type': '' };
  const get = (path: string, headers: Record<string, string> = {}) =>
    call(service, 'GET', path, undefined, { ...anonymous, ...headers });

  it('serves the API description without a credential', async () => {
    const { status, headers, body } = await get('/api/docs');
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.equal('application/json');
    expect(headers.get('cache-control')).to.equal('public, max-age=3600');
    expect(body).to.include({ openapi: '3.1.0' });
    expect(body.info).to.include({ title: 'Signalbox', version: '1.3.0' });
    expect(body.paths).to.include.all.keys('/api/docs', '/api/activities', '/api/health');
    expect(body.paths).not.to.include.any.keys(
      '/',
      '/docs',
      '/docs/init.js',
      '/health/live',
      '/health/ready',
      '/metrics',
    );
  });

  for (const path of ['/docs', '/docs/']) {
    it(`serves the page at ${path} and everything that it refers to`, async () => {
      const { status, headers, body: html } = await get(path);
      expect(status).to.equal(200);
      expect(headers.get('content-type')).to.equal('text/html; charset=utf-8');
      expect(html).to.include('<title>Signalbox API reference</title>');
      const names = [...String(html).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name as string);
      expect(names.filter((name) => name.startsWith('/docs/'))).to.have.length.above(4);
      for (const name of names) {
        expect(name, 'an address on this server').to.match(/^\/[a-z]/);
        const asset = await get(name);
        expect(asset.status, name).to.equal(200);
        expect(String(asset.body), name).not.to.equal('');
        expect(asset.headers.get('cache-control'), name).to.match(/^public, max-age=\d+$/);
      }
    });
  }

  it('needs no inline script, which the Content-Security-Policy forbids', async () => {
    const { headers, body: html } = await get('/docs');
    expect(headers.get('content-security-policy'))
      .to.match(/default-src 'self'/)
      .and.not.match(/unsafe-eval/);
    expect(html).not.to.match(/<script(?![^>]*\bsrc=)/);
    expect(html).not.to.match(/\son\w+=/);
  });

  it('serves each file with its media type', async () => {
    const kinds = {
      'init.js': 'text/javascript; charset=utf-8',
      'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
      'swagger-ui.css': 'text/css; charset=utf-8',
      'page.css': 'text/css; charset=utf-8',
      'icon.svg': 'image/svg+xml',
    };
    for (const [name, kind] of Object.entries(kinds)) {
      expect((await get(`/docs/${name}`)).headers.get('content-type'), name).to.equal(kind);
    }
  });

  it('has no other files', async () => {
    for (const name of [
      'nothing.js',
      'package.json',
      'swagger-ui.js',
      'init.js/x',
      '..%2fpackage.json',
      '%2e%2e/%2e%2e/package.json',
      '..%5cpackage.json',
      'init.js%00',
    ]) {
      expect((await get(`/docs/${name}`)).status, name).to.equal(404);
    }
  });

  it('does not resend files that the browser has cached', async () => {
    for (const path of ['/api/docs', '/docs', '/docs/init.js']) {
      const first = await get(path);
      const etag = first.headers.get('etag') as string;
      const again = await get(path, { 'if-none-match': etag });
      expect([again.status, again.body], path).to.deep.equal([304, '']);
      const other = await get(path, { 'if-none-match': '"other"' });
      expect([other.status, other.body], path).to.deep.equal([200, first.body]);
    }
  });

  it('compresses responses for clients that accept it', async () => {
    const packed = await get('/docs/swagger-ui-bundle.js', { 'accept-encoding': 'gzip' });
    const plain = await get('/docs/swagger-ui-bundle.js', { 'accept-encoding': 'identity' });
    const refused = await get('/docs/swagger-ui-bundle.js', { 'accept-encoding': 'gzip;q=0' });
    expect(packed.headers.get('content-encoding')).to.equal('gzip');
    expect(plain.headers.get('content-encoding')).to.equal(null);
    expect(refused.headers.get('content-encoding')).to.equal(null);
    expect(packed.headers.get('vary')).to.equal('Accept-Encoding');
    expect(packed.headers.get('etag')).not.to.equal(plain.headers.get('etag'));
    expect(packed.body).to.equal(plain.body);
  });
});
