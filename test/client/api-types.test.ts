/** Client and console are compiled with types of the API as it is: a changed field must not compile there. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { apiTypes, writtenApiTypes } from '../../api/client-types.ts';

const TOP = fileURLToPath(new URL('../../../', import.meta.url));

describe('client types', () => {
  it('match the API description (update with `npm run client:types`)', () => {
    const { stdout, status, stderr } = spawnSync('npx', ['biome', 'format', '--stdin-file-path=client/api-types.ts'], {
      cwd: TOP,
      input: apiTypes(),
      encoding: 'utf8',
      maxBuffer: 10_000_000,
      timeout: 60_000,
    });
    expect(status, stderr).to.equal(0);
    expect(stdout === writtenApiTypes(), 'the file differs from the description').to.equal(true);
  });
});
