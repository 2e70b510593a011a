/** Reports the error that ends a command. */
import { ConfigError } from '../../shared/errors.ts';
import { maskedAddresses } from '../../shared/secret-texts.ts';

/** Prints it. @returns the exit code */
export function reportFailure(error: unknown): number {
  const configured = error instanceof ConfigError;
  const message = maskedAddresses(error instanceof Error ? error.message : String(error));
  console.error(configured ? `The configuration has errors:\n${message}` : `signalbox: ${message}`);
  if (process.env.LOG_LEVEL === 'debug' && error instanceof Error) console.error(maskedAddresses(error.stack ?? ''));
  return configured ? 2 : 1;
}
