// Three matchmakers on one database, with the edge in front of them. The one that has the shard of a namespace is harmed: killed,
// suspended (SIGSTOP), cut off from PostgreSQL, or cut off from the edge. Players go on asking, and a find in that
// namespace must succeed again within 5 s. At the end of a round the harmed one is restored, and the shares are even again.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { SHARD_COUNT, shardOf } from '../../src/journal/pages.ts'
import { type DatabaseProxy, openDatabaseProxy } from '../matchmaker/database-proxy.ts'
import { ROLE_PROGRAM } from '../run/built-programs.ts'
import { freeSettings } from '../supervisor/started.ts'
import { until } from '../support/until.ts'
import { playerLoad } from './load/load.ts'
import type { FaultyPlatform } from './platform.ts'
import type { Round } from './report.ts'
import { acknowledge, type Harm, playRounds, type RunOptions, type RunResult, withRun } from './run.ts'

const BEFORE_ACKNOWLEDGED_MAX = 60
/** Matchmakers beside the platform's own. */
const FURTHER_COUNT = 2
const STOP_MS = 30_000
const LEASE_EVERY_MS = 50
/** Whose packets the firewall of the test drops are those of root. */
const OTHER_USER = 65_534

export const OWNER_FAULTS = ['owner-killed', 'owner-stopped', 'owner-without-database', 'owner-without-edges'] as const
export type OwnerFault = (typeof OWNER_FAULTS)[number]

/** `faults`: of the rounds, in turn. `stop_ms`: how long the owner is suspended. */
export type OwnerOptions = RunOptions & { faults: readonly OwnerFault[]; stop_ms?: number }

type Further = {
  folder: string
  port: string
  child: ChildProcess
  proxy: DatabaseProxy
  node_id: string
  is_other_user: boolean
}

export async function runShardOwner(
  options: OwnerOptions,
  tell: (number: number, round: Round) => void,
): Promise<RunResult> {
  const { faults, seed } = options
  const uses_firewall = faults.includes('owner-without-edges')
  const folder = await mkdtemp(join(tmpdir(), 'muster-faults-'))
  await chmod(folder, 0o711)
  const endings: (() => unknown)[] = []
  const env = { MUSTER_LOBBY_NETWORK: 'machine' }
  try {
    return await withRun({ folder, env, seed }, async (run) => {
      const { platform, history, random } = run
      const further: Further[] = []
      for (let number = 1; number <= FURTHER_COUNT; number++)
        further.push(await start(platform, number, uses_firewall, endings))
      const load = playerLoad({ platform, history, random: random.fork('load') }, [
        platform.as(platform.game.cloud_token),
      ])
      let round_count = 0
      const harm = async (): Promise<Harm> => {
        const fault = faults[round_count++ % faults.length]!
        await untilEven(platform)
        const owner = random.pick(further)
        await giveProbes(platform, owner)
        await acknowledge(history, random.int(BEFORE_ACKNOWLEDGED_MAX))
        const watched = await LeaseWatch.open(platform)
        const restore = await harmOwner(platform, owner, { fault, stop_ms: options.stop_ms ?? STOP_MS })
        watched.begin()
        const note = async (): Promise<string> => watched.close()
        return { what: fault, whole_after_ms: 0, may_end: [], restore, note }
      }
      return playRounds(run, load, options, harm, tell)
    })
  } finally {
    for (const end of endings.reverse()) await end()
    await rm(folder, { recursive: true, force: true })
  }
}

/** When the shard of the probes has another holder, and when that holder serves it. It shows where the time to a find goes. */
class LeaseWatch {
  readonly #db: pg.Client
  readonly #shard: number
  /** Before the fault. */
  #owner: string | null = null
  readonly #steps: string[] = []
  #is_closed = false
  #watching: Promise<void> = Promise.resolve()

  private constructor(db: pg.Client, shard: number) {
    this.#db = db
    this.#shard = shard
  }

  static async open({ database_url, game }: FaultyPlatform): Promise<LeaseWatch> {
    const db = new pg.Client({ connectionString: database_url, application_name: 'faults' })
    db.on('error', () => undefined)
    await db.connect()
    const watch = new LeaseWatch(db, shardOf(game.namespaces.probes))
    watch.#owner = (await watch.#read()).writer
    return watch
  }

  /** The fault has begun. */
  begin(): void {
    this.#watching = this.#watch(performance.now())
  }

  /** Returns what has been seen since then. */
  async close(): Promise<string> {
    this.#is_closed = true
    await this.#watching
    await this.#db.end()
    return this.#steps.length === 0 ? 'keeps its shard' : this.#steps.join(', ')
  }

  async #watch(begin_ms: number): Promise<void> {
    let last = this.#owner
    for (let is_served = false; !is_served && !this.#is_closed; await sleep(LEASE_EVERY_MS)) {
      const lease = await this.#read()
      const after = `${((performance.now() - begin_ms) / 1_000).toFixed(1)} s`
      if (lease.writer !== last) this.#steps.push(`taken after ${after}`)
      last = lease.writer
      is_served = lease.is_served && last !== this.#owner
      if (is_served) this.#steps.push(`served after ${after}`)
    }
  }

  async #read(): Promise<{ writer: string | null; is_served: boolean }> {
    const { rows } = await this.#db.query('select writer, is_served from shard_leases where shard = $1', [this.#shard])
    return rows[0]
  }
}

/** Returns a function that undoes the harm. */
async function harmOwner(
  platform: FaultyPlatform,
  owner: Further,
  { fault, stop_ms }: { fault: OwnerFault; stop_ms: number },
): Promise<() => Promise<void>> {
  switch (fault) {
    case 'owner-killed':
      owner.child.kill('SIGKILL')
      return async () => {
        owner.child = await launch(platform, owner)
      }
    case 'owner-stopped': {
      owner.child.kill('SIGSTOP')
      const stopped = sleep(stop_ms)
      return async () => {
        await stopped
        owner.child.kill('SIGCONT')
      }
    }
    case 'owner-without-database':
      owner.proxy.setAway(true)
      return async () => owner.proxy.setAway(false)
    case 'owner-without-edges':
      nft(`add rule inet faults out meta skuid 0 tcp dport ${owner.port} drop`)
      return async () => nft('flush chain inet faults out')
  }
}

/** Like a further machine: its own data folder, with the same keys and the same database. */
async function start(
  platform: FaultyPlatform,
  number: number,
  is_other_user: boolean,
  endings: (() => unknown)[],
): Promise<Further> {
  const folder = join(platform.folder, `matchmaker-${number}`)
  await mkdir(folder, { mode: 0o700 })
  await cp(join(platform.folder, 'keys'), join(folder, 'keys'), { recursive: true })
  const after = (end: () => unknown): void => void endings.push(end)
  const proxy = await openDatabaseProxy({ after }, platform.database_url)
  const port = String((await freeSettings(folder)).MUSTER_MATCHMAKER_PORT)
  const further = { folder, port, proxy, node_id: `matchmaker-${number}`, is_other_user }
  const child = await launch(platform, further)
  const started: Further = { ...further, child }
  endings.push(async () => {
    if (started.child.exitCode !== null || started.child.signalCode !== null) return
    const exited = once(started.child, 'exit')
    started.child.kill('SIGKILL')
    await exited
  })
  return started
}

async function launch(
  platform: FaultyPlatform,
  { folder, port, proxy, node_id, is_other_user }: Omit<Further, 'child'>,
): Promise<ChildProcess> {
  const { PATH, HOME } = process.env
  if (is_other_user) {
    execFileSync('chown', ['-R', String(OTHER_USER), folder])
    const socket_folder = new URLSearchParams(proxy.url.split('?')[1]).get('host')!
    execFileSync('chmod', ['-R', 'a+rwX', socket_folder])
  }
  const child = spawn(process.execPath, [ROLE_PROGRAM], {
    env: {
      ...{ PATH, HOME },
      ...platform.settings,
      ...(await freeSettings(folder)),
      MUSTER_MATCHMAKER_PORT: port,
      MUSTER_NODE: node_id,
      MUSTER_ROLES: 'matchmaker',
      DATABASE_URL: proxy.url,
    },
    stdio: ['ignore', process.env.FAULTS_LOG === undefined ? 'ignore' : 'inherit', 'inherit'],
    ...(is_other_user ? { uid: OTHER_USER } : {}),
  })
  await untilEven(platform, node_id)
  return child
}

type Lease = { shard: number; node_id: string; writer: string }

function readLeases(platform: FaultyPlatform): Promise<Lease[]> {
  return platform.withDatabase(async (db) => {
    const { rows } = await db.query<Lease>(
      `select shard, node_id, matchmakers.writer from shard_leases join matchmakers using (writer)
        where is_served and seen_ts > now() - interval '2 seconds' order by shard`,
    )
    return rows
  })
}

/** `node_id`: must be among those with a share. */
async function untilEven(platform: FaultyPlatform, node_id?: string): Promise<void> {
  const counts = new Map<string, number>()
  const isEven = async (): Promise<boolean> => {
    const leases = await readLeases(platform)
    counts.clear()
    for (const lease of leases) counts.set(lease.node_id, (counts.get(lease.node_id) ?? 0) + 1)
    if (leases.length !== SHARD_COUNT || (node_id !== undefined && !counts.has(node_id))) return false
    const is_complete = node_id !== undefined || counts.size === FURTHER_COUNT + 1
    return is_complete && Math.max(...counts.values()) - Math.min(...counts.values()) <= 1
  }
  try {
    await until('even shares of all shards', isEven)
  } catch (error) {
    throw new Error(`${(error as Error).message} Served: ${JSON.stringify([...counts])}`)
  }
}

/**
 * The owner gets the shard in which the next find is measured, for another one of its shards. It is given again when the
 * matchmakers share the shards anew meanwhile, as they do on a busy machine.
 */
async function giveProbes(platform: FaultyPlatform, { node_id }: Further): Promise<void> {
  const probes = shardOf(platform.game.namespaces.probes)
  let leases: Lease[] = []
  const isGiven = async (): Promise<boolean> => {
    leases = await readLeases(platform)
    // It is not among those that are served while it changes hands.
    const holder = leases.find(({ shard }) => shard === probes)
    const other = leases.find((lease) => lease.node_id === node_id)
    if (holder?.node_id === node_id) return true
    if (holder !== undefined && other !== undefined) await swap(platform, holder, other)
    return false
  }
  try {
    await until('the owner has the shard', isGiven)
  } catch (error) {
    throw new Error(`${(error as Error).message} Shard ${probes}, for ${node_id}. Served: ${JSON.stringify(leases)}`)
  }
}

async function swap(platform: FaultyPlatform, one: Lease, other: Lease): Promise<void> {
  await platform.withDatabase(async (db) => {
    await db.query(
      `update shard_leases set is_served = false, writer = case shard when $1 then $2::uuid else $3::uuid end
        where shard in ($1, $4)`,
      [one.shard, other.writer, one.writer, other.shard],
    )
    await db.query("select pg_notify('shard_leases', '')")
  })
}

const MARK = 'FAULTS_OWN_NETWORK'

/** Runs this program once more in a network namespace of its own, with a firewall, and ends with its code; inside, returns. */
export function inFirewall(): void {
  if (process.env[MARK] === undefined) {
    const args = ['--net', process.execPath, ...process.argv.slice(1)]
    const { status } = spawnSync('unshare', args, { env: { ...process.env, [MARK]: 'yes' }, stdio: 'inherit' })
    process.exit(status ?? 1)
  }
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  allowDropping()
}

/** To be called in a network namespace of its own. */
export function allowDropping(): void {
  nft('add table inet faults')
  nft('add chain inet faults out { type filter hook output priority 0; }')
}

function nft(command: string): void {
  execFileSync('nft', [command])
}
