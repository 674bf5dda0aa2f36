// Reports this runner every second, in its row of `runners`: its regions, what its lobbies may use together, its free ports
// and its free disk space. The matchmaker places lobbies by these reports, and sees by them that a node is away
// (matchmaker/watch/nodes.ts). `report_seq` grows with each report, so that the reader needs no clock of another machine.
import type { Context } from '../context.ts'
import { type Watch, watchEvery } from '../database/poller.ts'
import { freeBytes } from '../observe/disk.ts'
import { platformVersion } from '../platform-version.ts'
import type { Ports } from './ports.ts'

const REPORT_MS = 1_000
/** After this time the row of a renamed or removed runner is deleted. */
const REMOVED_AFTER = '1 day'

export function startReport(ctx: Context, ports: Pick<Ports, 'freeCount'>): Pick<Watch, 'close'> {
  const failure = 'the runner could not report'
  return watchEvery(ctx, REPORT_MS, { look: () => report(ctx, ports), failure })
}

async function report({ config, pool }: Context, ports: Pick<Ports, 'freeCount'>): Promise<void> {
  const { node_id, data_dir, runner_regions, node_capacity } = config
  await pool.query({
    name: 'runner-report',
    text: `
      with gone as (delete from runners where ts < now() - interval '${REMOVED_AFTER}' and runner_id <> $1)
      insert into runners (runner_id, regions, disk_free_bytes, cpu_cores, memory_mb, port_count, version)
      values ($1, $2, $3, $4, $5, $6, $7)
      on conflict (runner_id) do update set regions = excluded.regions, disk_free_bytes = excluded.disk_free_bytes,
        cpu_cores = excluded.cpu_cores, memory_mb = excluded.memory_mb, port_count = excluded.port_count,
        version = excluded.version, report_seq = runners.report_seq + 1, ts = now()`,
    values: [
      node_id,
      runner_regions,
      await freeBytes(data_dir),
      node_capacity.cpu_cores,
      node_capacity.memory_mb,
      ports.freeCount(),
      platformVersion(),
    ],
  })
}
