/** Has failed deliveries of webhooks repeated when their time has come. */
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** @param parts.retry gives how many deliveries wait to be repeated; only workers can do it */
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
