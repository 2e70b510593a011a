/** The settings of the deployment that the API reads. */
import type { SettingDefaults } from '../shared/contract/admin/settings.ts';
import type { Role } from '../shared/identity.ts';
import type { GroupRule } from '../shared/ports/auth/oidc.ts';

/** `infra/config.ts` documents each. */
export interface ApiSettings extends SettingDefaults {
  readonly disableRateLimit: boolean;
  readonly responseStallMs: number;
  readonly publicUrl: string | undefined;
  readonly trustedProxies: readonly string[];
  readonly allowAnyHost: boolean;
  readonly allowedHosts: readonly string[];
  readonly cookieSecure: boolean;
  readonly enableHsts: boolean;
  readonly proxyAuthHeader: string | undefined;
  readonly proxyAuthDefaultRole: Role | undefined;
  readonly proxyAuthTrustedIps: readonly string[];
  readonly googleClientId: string | undefined;
  readonly oidcName: string;
  readonly oidcRoles: readonly GroupRule[];
  readonly coordinatorAgent: string;
  readonly tenantHomeRoot: string;
  readonly tenantWorkspaceDirname: string;
  readonly defaultOwnerGateway: string;
  readonly subscribedProviders: readonly string[];
  readonly timeZone: string;
  readonly maxAgents: number;
  readonly maxAgentKeys: number;
  readonly maxConnections: number;
  readonly maxRecurringTasks: number;
  readonly runnerUrl: string | undefined;
  readonly githubSyncIntervalMs: number;
  readonly webhookAllowedNetworks: readonly string[];
  readonly webhookMaxAttempts: number;
  readonly workloadQueueDepthNormal: number;
  readonly workloadQueueDepthThrottle: number;
  readonly workloadQueueDepthShed: number;
  readonly workloadBusyRatioThrottle: number;
  readonly workloadBusyRatioShed: number;
  readonly workloadErrorRateThrottle: number;
  readonly workloadErrorRateShed: number;
  readonly workloadRecentWindowSeconds: number;
}
