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

  it('that no client can mend by trying again are 500, without their text', () => {
    for (const error of [withCode('23505'), new Error('relation "x" does not exist')])
      expect(asAppError(error)).to.include({ status: 500, message: 'Internal server error' });
  });
});
