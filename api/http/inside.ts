/**
 * A call of the API within another request, such as an MCP tool call. It passes the same steps as every request, from
 * authorization and limits to the response, with the caller, address and id of the outer request.
 */
import { Socket } from 'node:net';
import type { Request, Response } from 'express';
import { AppError } from '../../shared/errors.ts';
import { innerContext, type RequestContext } from './context.ts';
import type { Asked, InnerCall, InnerResponse } from './route.ts';

/** Headers of the outer request that a handler may read. */
const PASSED = ['host', 'user-agent', 'x-agent-name'];

/** The request target. */
export function targetOf({ route, params, query }: Pick<InnerCall, 'route' | 'params' | 'query'>): string {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  const search = new URLSearchParams(query).toString();
  return search === '' ? path : `${path}?${search}`;
}

/**
 * @param handle must always write a response
 * @throws Error when it writes none
 */
export async function callInside(
  outer: RequestContext,
  call: InnerCall,
  handle: (context: RequestContext, asked: Asked) => Promise<void>,
): Promise<InnerResponse> {
  // Of the same classes, so that a handler finds all of Express on them.
  const Message = outer.req.constructor as new (socket: Socket) => Request;
  const Reply = outer.res.constructor as new (req: Request) => Response;
  const req = new Message(new Socket());
  req.method = call.route.method.toUpperCase();
  req.url = targetOf(call);
  req.originalUrl = req.url;
  for (const name of PASSED) if (outer.req.headers[name] !== undefined) req.headers[name] = outer.req.headers[name];
  if (call.idempotencyKey !== undefined) req.headers['idempotency-key'] = call.idempotencyKey;
  if (call.body !== undefined) {
    const body = Buffer.from(JSON.stringify(call.body));
    req.headers['content-type'] = 'application/json';
    req.headers['content-length'] = String(body.length);
    req.push(body);
  }
  req.complete = true;
  req.push(null);
  const res = new Reply(req);
  let response: InnerResponse | undefined;
  res.write = () => {
    throw new AppError(400, `The response is a file or a stream; get it with ${req.method} ${req.url} over HTTP.`);
  };
  res.end = (content?: unknown) => {
    const text = typeof content === 'string' || content instanceof Buffer ? content.toString() : '';
    response ??= { status: res.statusCode, headers: res.getHeaders(), text };
    return res;
  };
  await handle(innerContext(outer, req, res, call.via), { params: call.params, query: call.query });
  if (!response) throw new Error(`${req.method} ${call.route.path} has written no response`);
  return response;
}
