/**
 * The scheduled task that clients know as `webhook_retry`. Workers retry on time without it, with the back-off of
 * `commands/webhooks/retries.ts`.
 */
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** @param parts.retry returns how many deliveries wait for a retry; only workers can retry */
export const webhookRetrySchedule = (parts: {
  readonly retry: () => Promise<number>;
  readonly setting: Setting;
}): Schedule => ({
  id: 'webhook_retry',
  kind: 'webhook-retry',
  name: 'Retry failed webhook deliveries',
  everyMs: EVERY_MINUTE_MS,
  enabled: isOn(parts.setting, 'webhooks.retry_enabled'),
  async run() {
    return `${counted(await parts.retry(), 'delivery waits', 'deliveries wait')} to be repeated.`;
  },
});
