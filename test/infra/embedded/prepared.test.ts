/** The database of the build: what is packed comes out again, and only for the PGlite that it was made with. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { isPrepared, pack, unpack } from '../../../infra/embedded/prepared.ts';

describe('prepared database', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'sbx-prepared-'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  function packed(): URL {
    const from = join(root, 'from');
    mkdirSync(join(from, 'base', 'empty'), { recursive: true });
    writeFileSync(join(from, 'PG_VERSION'), '18\n');
    writeFileSync(join(from, 'base', 'bytes'), Buffer.from([0, 10, 255, 10]));
    writeFileSync(join(from, 'base', 'nothing'), '');
    const file = pathToFileURL(join(root, 'packed.gz'));
    pack(from, 'me', file);
    return file;
  }

  it('is unpacked unchanged and readable only by its owner', () => {
    const to = join(root, 'to');
    expect(unpack(to, packed())).to.equal(true);
    expect(readFileSync(join(to, 'PG_VERSION'), 'utf8')).to.equal('18\n');
    expect([...readFileSync(join(to, 'base', 'bytes'))]).to.deep.equal([0, 10, 255, 10]);
    expect(statSync(join(to, 'base', 'nothing')).size).to.equal(0);
    expect(statSync(join(to, 'base', 'empty')).isDirectory()).to.equal(true);
    for (const path of ['', 'base', 'base/empty']) expect(statSync(join(to, path)).mode & 0o777).to.equal(0o700);
    expect(statSync(join(to, 'base', 'bytes')).mode & 0o777).to.equal(0o600);
  });

  it('is not used with another version of PGlite, or if there is none', () => {
    const file = packed();
    const content = gunzipSync(readFileSync(file)).toString('latin1');
    const other = content.replace(/"engine":"[^"]*"/, '"engine":"0.0.1"');
    expect(other).not.to.equal(content);
    writeFileSync(file, gzipSync(Buffer.from(other, 'latin1')));
    expect(unpack(join(root, 'to'), file)).to.equal(false);
    expect(unpack(join(root, 'to'), pathToFileURL(join(root, 'missing.gz')))).to.equal(false);
  });

  it('is rebuilt if its build script has changed', () => {
    const file = packed();
    expect(isPrepared('me', file)).to.equal(true);
    expect(isPrepared('somebody else', file)).to.equal(false);
  });

  it('is part of the build, as a database that is not open', () => {
    const to = join(root, 'to');
    expect(unpack(to)).to.equal(true);
    expect(readFileSync(join(to, 'PG_VERSION'), 'utf8')).to.match(/^\d+\n$/);
    expect(() => statSync(join(to, 'postmaster.pid'))).to.throw('ENOENT');
  });
});
