// The authority of a platform, in the key folder of its data folder.
import { join } from 'node:path'
import type { Context } from '../../context.ts'
import { type Authority, openAuthority } from '../authority.ts'

export function openPlatformAuthority(ctx: Pick<Context, 'config' | 'now'>): Promise<Authority> {
  return openAuthority(join(ctx.config.data_dir, 'keys'), ctx.now())
}
