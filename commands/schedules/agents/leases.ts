/** Writes the summary of heartbeats that changed nothing. */
import { type SummaryParts, sumUpHeartbeats } from '../../agents/leases.ts';
import { counted, EVERY_MINUTE_MS, type Schedule } from '../schedule.ts';

const SUMMARY_MS = 5 * EVERY_MINUTE_MS;

export const heartbeatSummarySchedule = (parts: SummaryParts): Schedule => ({
  id: 'heartbeat_summary',
  kind: 'heartbeat-summary',
  name: 'Sum up heartbeats',
  everyMs: SUMMARY_MS,
  async run() {
    const agents = await sumUpHeartbeats(parts);
    return `${counted(agents, 'agent has', 'agents have')} sent heartbeats.`;
  },
});
