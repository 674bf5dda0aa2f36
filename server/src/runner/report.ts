// Reports this runner every second, in its row of `runners`: its regions, what its lobbies may use together, its free ports, its
// free disk space and what its machine uses. A runner whose lobbies run on other machines reports each of these that responds,
// instead. The matchmaker places lobbies by these reports, and sees by them that a node is away (matchmaker/watch/nodes.ts).
// `report_seq` grows with each report, so that the reader needs no clock of another machine.
import type { Context } from '../context.ts'
import { type Watch, watchEvery } from '../database/poller.ts'
import { freeBytes } from '../observe/disk.ts'
import { MachineMeter } from '../observe/machine-meter.ts'
import { platformVersion } from '../wire/platform-version.ts'
import type { DriverNode, DriverNodes } from './drivers/driver.ts'
import type { Ports } from './ports.ts'

const REPORT_MS = 1_000
/** After this time the row of a renamed or removed runner is deleted. */
const REMOVED_AFTER = '1 day'

export function startReport(
  ctx: Context,
  ports: Pick<Ports, 'freeCount'>,
  nodes: OtherNodes | null,
): Pick<Watch, 'close'> {
  const failure = 'the runner could not report'
  // This process sees its own machine only.
  const meter = nodes === null ? new MachineMeter(ctx.elapsed) : null
  const version = platformVersion()
  const run = async (): Promise<void> => {
    await report(ctx, nodesOf(ctx, ports, nodes), { meter, version })
    if (nodes !== null) await reportRefusal(ctx, nodes)
  }
  return watchEvery(ctx, REPORT_MS, { run, failure })
}

type OtherNodes = Pick<DriverNodes, 'ids' | 'here' | 'refusalOfAll'>

type Reported = Pick<DriverNode, 'node_id' | 'regions' | 'refusal'> & {
  cpu_cores: number | null
  memory_mb: number | null
  ports: Pick<Ports, 'freeCount'>
}

function nodesOf(
  { config: { node_id, node_capacity } }: Context,
  ports: Pick<Ports, 'freeCount'>,
  nodes: OtherNodes | null,
): Reported[] {
  if (nodes === null) return [{ node_id, regions: null, refusal: null, ...node_capacity, ports }]
  // Null: lobbies are not limited by the size of machines.
  const sizeOf = (size: number, limit: number | null): number | null => limit && size
  return nodes.here().map((node) => ({
    ...node,
    cpu_cores: sizeOf(node.cpu_cores, node_capacity.cpu_cores),
    memory_mb: sizeOf(node.memory_mb, node_capacity.memory_mb),
  }))
}

async function report(
  { config, pool }: Context,
  nodes: readonly Reported[],
  { meter, version }: { meter: MachineMeter | null; version: string },
): Promise<void> {
  const { data_dir, runner_regions } = config
  const disk_free_bytes = await freeBytes(data_dir)
  const machine = meter?.read() ?? null
  for (const { node_id, regions, refusal, cpu_cores, memory_mb, ports } of nodes) {
    await pool.query({
      name: 'runner-report',
      text: `
      with gone as (delete from runners where ts < now() - interval '${REMOVED_AFTER}' and runner_id <> $1)
      insert into runners (runner_id, regions, disk_free_bytes, cpu_cores, memory_mb, port_count, version, refusal,
        used_cpu_cores, used_memory_mb, machine_cpu_cores, machine_memory_mb)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
      on conflict (runner_id) do update set regions = excluded.regions, disk_free_bytes = excluded.disk_free_bytes,
        cpu_cores = excluded.cpu_cores, memory_mb = excluded.memory_mb, port_count = excluded.port_count,
        version = excluded.version, refusal = excluded.refusal, used_cpu_cores = excluded.used_cpu_cores,
        used_memory_mb = excluded.used_memory_mb, machine_cpu_cores = excluded.machine_cpu_cores,
        machine_memory_mb = excluded.machine_memory_mb, report_seq = runners.report_seq + 1, ts = now()`,
      values: [
        node_id,
        runner_regions.filter((name) => regions?.includes(name) ?? true),
        disk_free_bytes,
        cpu_cores,
        memory_mb,
        ports.freeCount(),
        version,
        refusal,
        machine?.cpu_cores,
        machine?.memory_mb,
        machine?.cpu_cores_max,
        machine?.memory_mb_max,
      ],
    })
  }
}

/** What holds for machines that do not respond too. It is no report of theirs. */
async function reportRefusal({ pool }: Context, nodes: OtherNodes): Promise<void> {
  const here = new Set(nodes.here().map(({ node_id }) => node_id))
  await pool.query({
    name: 'runner-refusal',
    text: 'update runners set refusal = $2 where runner_id = any($1) and refusal is distinct from $2',
    values: [nodes.ids.filter((node_id) => !here.has(node_id)), nodes.refusalOfAll()],
  })
}
