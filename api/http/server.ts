/** The HTTP server: Node's own, with the Express app as its handler. */
import { createServer, type Server } from 'node:http';
import type { Services } from '../services.ts';
import { createApp, type Mount } from './app.ts';
import { handleClientErrors } from './client-errors.ts';
import { readTarget } from './hosts.ts';
import { classesFor } from './prototypes.ts';
import { checkBasePath, pathRemover } from './public-url.ts';
import type { Route } from './route.ts';

export function createApiServer(routes: readonly Route[], services: Services, mount?: Mount): Server {
  checkBasePath(
    services.settings,
    routes.map(({ path }) => path),
  );
  const removePath = pathRemover(services.settings);
  const app = createApp(routes, services, mount);
  const limits = { requestTimeout: 60_000, headersTimeout: 20_000, keepAliveTimeout: 65_000 };
  // The app itself refuses requests without a Host header.
  const server = createServer({ ...classesFor(app), ...limits, requireHostHeader: false }, app);
  server.prependListener('request', (req) => {
    readTarget(req);
    removePath(req);
  });
  handleClientErrors(server, services.log);
  server.maxRequestsPerSocket = 0;
  return server;
}
