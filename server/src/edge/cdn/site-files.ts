// Where the edge reads files of sites: the folder of stored files, or the cache on this disk in front of a bucket or of the link of a
// joined node. Every byte that is returned has the recorded hash.
import { join } from 'node:path'
import { instanceName } from '../../config/processes.ts'
import type { Context } from '../../context.ts'
import { damageOf, readBlock, readSound } from '../../objects/damage.ts'
import type { SiteFiles } from './disk-cache.ts'
import { DiskCache } from './disk-cache.ts'

export function openSiteFiles(ctx: Context): SiteFiles {
  const { objects, link, data_dir, site_cache_bytes_max } = ctx.config
  const { number, count } = ctx.config.process
  // They are far away.
  if (objects !== null || link !== null)
    return new DiskCache(
      ctx,
      // Each edge process has a part of it.
      join(data_dir, 'cache', instanceName('sites', number)),
      Math.floor(site_cache_bytes_max / count),
    )
  return {
    readWhole: (file) => readSound(ctx.objects, file),
    async open(file, block_hashes) {
      const { object_key } = file
      const object = await ctx.objects
        .open(object_key)
        .catch((error: unknown) => Promise.reject(damageOf(object_key, error)))
      return {
        readBlock: (index) => readBlock(object, file, block_hashes, index),
        close: () => object.close(),
      }
    },
    close: async () => undefined,
  }
}
