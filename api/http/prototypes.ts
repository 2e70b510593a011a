/**
 * Express sets the prototype of every request and response. For V8 that makes another kind of object out of each, and
 * costs more than the rest of Express. Here Node creates them with the prototypes that Express would set, and setting
 * the same prototype again changes nothing (docs/adr/0042-express-is-the-facade.md has the measurement).
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Express } from 'express';

/** The classes with which Node's server makes the requests and responses of `app`: options of `createServer`. */
export function classesFor(app: Express): {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
} {
  class Request extends IncomingMessage {}
  class Response extends ServerResponse {}
  Object.setPrototypeOf(Request.prototype, app.request);
  Object.setPrototypeOf(Response.prototype, app.response);
  Object.assign(app, { request: Request.prototype, response: Response.prototype });
  return { IncomingMessage: Request, ServerResponse: Response as typeof ServerResponse };
}
