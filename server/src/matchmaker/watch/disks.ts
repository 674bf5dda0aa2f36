// The disks that lobbies would fill. A lobby writes logs, may need its build unpacked, and is written into a journal that
// may share its disk; when a database's disk is full nobody gets a seat any more, not even in a lobby that runs. So
// regions whose runner has little left open no lobby until there is more: what runs goes on, and is found. Each runner
// says what it has (runner/disk.ts); where several serve a region any of them may get the lobby, so the least counts.
import type { Context } from '../../context.ts'
import { type Watch, watchEvery } from '../../database/poller.ts'
import type { Books } from '../shards/books.ts'

const DISKS_EVERY_MS = 2_000
/** What was said longer ago says nothing: the runner is gone, and so is what it knew. By the database's clock. */
const FRESH = '10 seconds'

export type DiskWatch = Pick<Watch, 'close'>

/** Resolves when it has looked once, or could not. */
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

  const failure = 'what the runners say of their disks could not be read; trying again'
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
