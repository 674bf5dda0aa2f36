// Unpacks the builds of deployed versions before their first lobby, so that no player waits for that. Every runner does it
// for the game modes of its regions, one build at a time: a lobby that waits for its build comes first. The deployed versions
// are read at each deploy, and at an interval in case its notification was lost.
import { gameModesOf, type VersionConfig } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { type Poller, watchChannel } from '../database/poller.ts'
import { CHANNELS } from '../wire/channels.ts'
import type { BuildSource, Builds } from './builds.ts'
import { sourceOf } from './launch.ts'

const READ_EVERY_MS = 30_000
/** Versions that are read: those deployed last. */
const VERSIONS_MAX = 64

export class BuildsAhead {
  readonly #ctx: Context
  readonly #builds: Builds
  readonly #reads: Poller
  /** Not unpacked yet, by build and user. */
  readonly #waiting = new Map<string, BuildSource>()
  /** Everything that was deployed at the last read. */
  #deployed = new Set<string>()

  constructor(ctx: Context, builds: Builds) {
    this.#ctx = ctx
    this.#builds = builds
    this.#reads = watchChannel(ctx, {
      channel: CHANNELS.namespaces,
      every_ms: READ_EVERY_MS,
      run: () => this.#read(),
      failure: 'the deployed versions could not be read; trying again',
    })
  }

  /** Called when a build is ready or has failed. A failure is repeated by the start of a lobby. */
  next(): void {
    for (const [key, source] of this.#waiting) {
      if (this.#builds.find(source) === 'unpacking') return
      this.#waiting.delete(key)
    }
  }

  close(): Promise<void> {
    return this.#reads.close()
  }

  async #read(): Promise<void> {
    const { rows } = await this.#ctx.pool.query<{ config: VersionConfig }>({
      name: 'runner-deployed',
      text: `
        select config from versions where version_id in (
          select version_id from namespaces group by version_id order by max(version_id::text) desc limit ${VERSIONS_MAX}
        )`,
    })
    const deployed = new Map(rows.flatMap(({ config }) => this.#wantedBy(config)).map((one) => [keyOf(one), one]))
    for (const [key, wanted] of deployed) if (!this.#deployed.has(key)) this.#waiting.set(key, wanted)
    for (const key of this.#waiting.keys()) if (!deployed.has(key)) this.#waiting.delete(key)
    this.#deployed = new Set(deployed.keys())
    this.next()
  }

  #wantedBy(config: VersionConfig): BuildSource[] {
    const { runner_regions } = this.#ctx.config
    return [...gameModesOf(config).values()].flatMap((mode) => {
      const { regions } = mode
      const is_here = regions === null || regions.some((region) => runner_regions.includes(region))
      return is_here ? (sourceOf(mode) ?? []) : []
    })
  }
}

function keyOf({ build_id, user }: BuildSource): string {
  return user == null ? build_id : `${build_id} ${user.uid} ${user.gid}`
}
