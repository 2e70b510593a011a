/** Every route of the service. */
import type { Route } from '../http/route.ts';
import { accessRequestRoutes } from './access-requests.ts';
import { agentKeyRoutes } from './agent-keys.ts';
import { authRoutes } from './auth.ts';
import { docsRoutes } from './docs.ts';
import { globalKeyRoutes } from './global-key.ts';
import { healthRoutes } from './health.ts';
import { monitoringRoutes } from './monitoring.ts';
import { setupRoutes } from './setup.ts';
import { userRoutes } from './users.ts';

export const routes: readonly Route[] = [
  ...authRoutes,
  ...setupRoutes,
  ...userRoutes,
  ...accessRequestRoutes,
  ...globalKeyRoutes,
  ...agentKeyRoutes,
  ...monitoringRoutes,
  ...healthRoutes,
  ...docsRoutes(() => routes),
];
