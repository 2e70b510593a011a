/** Errors of stores: what callers read. */
import { expect } from 'chai';
import { asAppError } from '../../api/http/errors.ts';
import { LogUnavailableError } from '../../shared/errors.ts';

describe('errors of stores', () => {
  const withCode = (code: string) => Object.assign(new Error('of the driver'), { code });
  const TABLE: readonly (readonly [error: Error, says: RegExp])[] = [
    [withCode('ECONNREFUSED'), /cannot be reached/],
    [withCode('57P01'), /cannot be reached/],
    [new Error('Connection terminated unexpectedly'), /cannot be reached/],
    [new LogUnavailableError('of the log'), /cannot be reached/],
    [withCode('57014'), /did not respond in time/],
    [new Error('Query read timeout'), /did not respond in time/],
    [new Error('timeout exceeded when trying to connect'), /connections to the database are in use/],
  ];
  for (const [error, says] of TABLE) {
    const { code = error.message } = error as Error & { readonly code?: string };
    it(`${code}: 503, and says ${says.source}`, () => {
      const { status, message, extras } = asAppError(error);
      expect([status, extras.code]).to.deep.equal([503, 'STORE_UNAVAILABLE']);
      expect(message)
        .to.match(says)
        .and.match(/try again in a moment\.$/);
      expect(message).not.to.include('of the ');
    });
  }

  const FAULTS: readonly (readonly [error: Error, code: string, says: RegExp])[] = [
    [withCode('25006'), 'STORE_READ_ONLY', /promote it, set DATABASE_URL/],
    [withCode('53100'), 'STORE_FULL', /free space/],
    [withCode('ENOSPC'), 'STORE_FULL', /free space/],
    [withCode('53200'), 'STORE_OUT_OF_RESOURCES', /lower DATABASE_POOL/],
    [withCode('58030'), 'STORE_DAMAGED', /check the disk/],
    [
      Object.assign(new Error('could not write: No space left on device'), { code: '58030' }),
      'STORE_FULL',
      /free space/,
    ],
    [withCode('XX001'), 'STORE_DAMAGED', /restore a backup/],
    [withCode('28P01'), 'STORE_REFUSED', /the password/],
    [withCode('42501'), 'STORE_REFUSED', /rights/],
    [withCode('57P05'), 'STORE_UNAVAILABLE', /cannot be reached/],
    [new LogUnavailableError('log', { cause: withCode('53100') }), 'STORE_FULL', /free space/],
    [new LogUnavailableError('log', { remedy: 'Operators: start the nodes.' }), 'STORE_UNAVAILABLE', /start the nodes/],
  ];
  for (const [error, code, says] of FAULTS) {
    const { code: from = error.message } = error as Error & { readonly code?: string };
    it(`${from}: 503 ${code} with Retry-After, and says ${says.source}`, () => {
      const { status, message, extras } = asAppError(error);
      expect([status, extras.code]).to.deep.equal([503, code]);
      expect(message).to.match(says);
      expect(Number(extras.headers?.['Retry-After'])).to.be.within(1, 60);
    });
  }

  it('that no client can mend by trying again are 500, without their text', () => {
    for (const error of [withCode('23505'), new Error('relation "x" does not exist')])
      expect(asAppError(error)).to.include({ status: 500, message: 'Internal server error' });
  });
});
