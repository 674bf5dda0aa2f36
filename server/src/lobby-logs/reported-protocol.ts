// What the server of a lobby reported in the protocol of another platform, as the API returns it.
import type { LogsLobbySummary } from '@musterhost/contract'
import type { ProtocolReportRow } from '../database/schema.ts'

export function reportedProtocol(report: ProtocolReportRow | null): Pick<LogsLobbySummary, 'protocol'> {
  if (report === null) return {}
  const { protocol: name, state, health_ts, is_healthy } = report
  return {
    protocol: {
      name,
      state,
      ...(health_ts !== null && { health_ts: new Date(health_ts).toISOString() }),
      ...(is_healthy !== null && { is_healthy }),
    },
  }
}
