/** Validation of a part of a body that depends on another part: errors keep the path within the whole body. */
import { ZodError } from 'zod';

/** Runs `parse`. @throws ZodError whose paths begin with `key` */
export function nested<T>(key: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof ZodError)) throw error;
    throw new ZodError(error.issues.map((issue) => ({ ...issue, path: [key, ...issue.path] })));
  }
}
