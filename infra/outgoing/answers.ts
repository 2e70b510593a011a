/** What requests outward do with their answers. */

/** The body as text. @param tooMuch the error for one of more bytes than this; its connection is ended */
export async function textOf(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
  tooMuch: () => Error,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    // Leaving the loop ends the connection.
    if (bytes > maxBytes) throw tooMuch();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Undefined: it is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What went wrong below HTTP. The message of the error may hold an address, which is nobody's business. */
export function codeOf(error: unknown): string {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  return String(cause?.code ?? code ?? 'no connection');
}
