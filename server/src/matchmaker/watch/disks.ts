// Stops new lobbies in regions whose runner has little disk space left. A lobby writes logs and may need its build unpacked,
// on a disk that it may share with the database; when that is full, no request gets a seat. Running lobbies go on and are
// found. Each runner reports its free space (runner/disk.ts). Any runner of a region may get a lobby, so the least counts.
import type { Context } from '../../context.ts'
import { type Watch, watchEvery } from '../../database/poller.ts'
import type { Books } from '../shards/books.ts'

const DISKS_EVERY_MS = 2_000
/** An older report is ignored: its runner is gone. By the database's clock. */
const FRESH = '10 seconds'

export type DiskWatch = Pick<Watch, 'close'>

/** Resolves when the reports have been read once, or could not be. */
export async function watchDisks(ctx: Context, books: Pick<Books, 'closeRegions'>): Promise<DiskWatch> {
  let closed: ReadonlySet<string> = new Set()

  async function look(): Promise<void> {
    const regions = await readLowRegions(ctx)
    for (const region of regions.difference(closed)) {
      ctx.log.warn({ region }, 'the disk of a region is nearly full; it opens no lobby until there is room')
    }
    for (const region of closed.difference(regions)) ctx.log.info({ region }, 'a region opens lobbies again')
    closed = regions
    books.closeRegions(regions)
  }

  const failure = 'the disk reports of the runners could not be read; trying again'
  const watch = watchEvery(ctx, DISKS_EVERY_MS, { look, failure })
  await watch.looking()
  return watch
}

async function readLowRegions({ config, pool }: Context): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ region: string }>({
    name: 'matchmaker-disks',
    text: `
      select distinct region from runners, unnest(regions) as region
      where disk_free_bytes < $1 and ts > now() - interval '${FRESH}'`,
    values: [config.lobbies.disk_free_bytes_min],
  })
  return new Set(rows.map(({ region }) => region))
}
