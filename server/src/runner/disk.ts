// Reports the free space of the runner's disk every two seconds, in its row of `runners`. The matchmaker decides what
// follows from it (matchmaker/watch/disks.ts). A row that is not renewed belongs to a runner that is gone.
import type { Context } from '../context.ts'
import { type Watch, watchEvery } from '../database/poller.ts'
import { freeBytes } from '../observe/disk.ts'

const REPORT_MS = 2_000
/** After this time the row of a renamed or removed runner is deleted. */
const REMOVED_AFTER = '1 day'

export function startDiskReport(ctx: Context): Pick<Watch, 'close'> {
  const failure = 'free disk space could not be reported'
  return watchEvery(ctx, REPORT_MS, { look: () => report(ctx), failure })
}

async function report({ config, pool }: Context): Promise<void> {
  const { node_id, data_dir, regions } = config
  await pool.query({
    name: 'runner-disk',
    text: `
      with gone as (delete from runners where ts < now() - interval '${REMOVED_AFTER}' and runner_id <> $1)
      insert into runners (runner_id, regions, disk_free_bytes) values ($1, $2, $3)
      on conflict (runner_id) do update
        set regions = excluded.regions, disk_free_bytes = excluded.disk_free_bytes, ts = now()`,
    values: [node_id, regions.map(({ name }) => name), await freeBytes(data_dir)],
  })
}
