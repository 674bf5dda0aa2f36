// Three machines with etcd, Patroni and PostgreSQL of Debian's packages, from the files in deploy/postgres/: only addresses,
// ports and folders are put in. The machines are folders, and their programs listen on loopback.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { findAccount } from '../../src/database/embedded/account.ts'
import { findProcesses, sendSignal } from '../../src/database/embedded/processes.ts'
import type { Account } from '../../src/database/embedded/program.ts'
import type { ReplicatedDatabase } from '../faults/failover.ts'
import type { Random } from '../faults/random.ts'
import type { Need } from '../run/optional-programs.ts'
import { freePorts } from '../support/free-ports.ts'
import { until } from '../support/until.ts'
import { silent } from './harness.ts'

const DEPLOY = join(import.meta.dirname, '..', '..', '..', 'deploy', 'postgres')
const MACHINES = 3
const POSTGRES_FOLDER = '/usr/lib/postgresql'
const PASSWORD = 'a-password-of-the-test'

type Ports = { peer: number; etcd: number; rest: number; postgres: number }
type Machine = { name: string; folder: string; ports: Ports; programs: ChildProcess[] }
type Member = { name: string; role: string; state: string }

export const PATRONI_NEEDS = ['patroni', 'python3-etcd', 'etcd', 'pg_rewind'] as const satisfies Need[]

/** The programs of the newest PostgreSQL that Debian has installed. */
function findServerFolder(): string | null {
  if (!existsSync(POSTGRES_FOLDER)) return null
  const versions = readdirSync(POSTGRES_FOLDER).filter((name) =>
    existsSync(join(POSTGRES_FOLDER, name, 'bin', 'pg_rewind')),
  )
  const newest = versions.map(Number).toSorted((a, b) => b - a)[0]
  return newest === undefined ? null : join(POSTGRES_FOLDER, String(newest), 'bin')
}

export class PatroniCluster implements ReplicatedDatabase {
  readonly #folder: string
  readonly #account: Account
  readonly #machines: Machine[]
  #mistakes: readonly string[] = []
  #dead: Machine | null = null
  #strikes = 0

  private constructor(folder: string, account: Account, machines: Machine[]) {
    this.#folder = folder
    this.#account = account
    this.#machines = machines
  }

  static async start(): Promise<PatroniCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'muster-patroni-'))
    await chmod(folder, 0o755)
    const account = await findAccount(folder, silent)
    const ports = await freePorts(4 * MACHINES)
    const machines = Array.from({ length: MACHINES }, (_, index) => {
      const [peer, etcd, rest, postgres] = ports.slice(4 * index) as [number, number, number, number]
      const name = `db${index + 1}`
      return { name, folder: join(folder, name), ports: { peer, etcd, rest, postgres }, programs: [] }
    })
    const cluster = new PatroniCluster(folder, account, machines)
    try {
      for (const machine of machines) await cluster.#makeFolder(machine)
      cluster.#mistakes = mistakesOf(environmentOf(machines[0]!, machines))
      for (const machine of machines) cluster.#run(machine)
      await cluster.#whole()
      await cluster.#makeDatabase()
    } catch (error) {
      const said = machines.map(({ folder: place }) => lastLines(join(place, 'patroni.log'))).join('\n')
      await cluster.stop()
      throw new Error(`the cluster did not start:\n${said}`, { cause: error })
    }
    return cluster
  }

  /** What `patroni --validate-config` finds in the configuration. */
  get mistakes(): readonly string[] {
    return this.#mistakes
  }

  get url(): string {
    const hosts = this.#machines.map(({ ports }) => `127.0.0.1:${ports.postgres}`).join(',')
    return `postgres://muster:${PASSWORD}@${hosts}/muster?target_session_attrs=read-write`
  }

  /** In turn: PostgreSQL alone is killed, and Patroni sees it; the machine of the primary loses power. */
  async strike(_random: Random): Promise<string> {
    const primary = await this.#primary()
    if (primary === null) throw new Error('there is no primary to kill')
    const is_machine = this.#strikes++ % 2 === 1
    if (is_machine) {
      await this.#kill(primary)
      this.#dead = primary
    } else for (const id of await this.#postgresOf(primary)) sendSignal(id, 'SIGKILL')
    await until('another primary', async () => {
      const now = await this.#primary()
      return now !== null && now !== primary && (await acceptsWrites(now))
    })
    return `${primary.name}: ${is_machine ? 'machine without power' : 'PostgreSQL killed'}`
  }

  async repair(): Promise<void> {
    if (this.#dead !== null) this.#run(this.#dead)
    this.#dead = null
    await this.#whole()
  }

  async stop(): Promise<void> {
    for (const machine of this.#machines) await this.#kill(machine)
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #makeFolder(machine: Machine): Promise<void> {
    for (const folder of [machine.folder, join(machine.folder, 'etcd')]) {
      await mkdir(folder, { mode: 0o700 })
      if (this.#account !== null) await chown(folder, this.#account.uid, this.#account.gid)
    }
    // The one path of the file that cannot be set by the environment.
    const config = readFileSync(join(DEPLOY, 'patroni.yml'), 'utf8').replace('/var/run/postgresql', machine.folder)
    writeFileSync(join(machine.folder, 'patroni.yml'), config)
  }

  #run(machine: Machine): void {
    const { folder } = machine
    const run = (name: string, command: string): ChildProcess => {
      const log = join(folder, `${name}.log`)
      return spawn('/bin/sh', ['-c', `exec ${command} >> ${log} 2>&1`], {
        cwd: folder,
        env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', ...environmentOf(machine, this.#machines) },
        stdio: 'ignore',
        detached: true,
        ...(this.#account && { uid: this.#account.uid, gid: this.#account.gid }),
      })
    }
    machine.programs = [run('etcd', 'etcd'), run('patroni', `patroni ${join(folder, 'patroni.yml')}`)]
  }

  /** All of its processes at once. */
  async #kill(machine: Machine): Promise<void> {
    for (const { pid } of machine.programs) if (pid !== undefined) sendSignal(pid, 'SIGKILL')
    await until('a machine to be off', async () => {
      const ids = await this.#postgresOf(machine)
      for (const id of ids) sendSignal(id, 'SIGKILL')
      return ids.length === 0
    })
    machine.programs = []
  }

  #postgresOf({ folder }: Machine): Promise<number[]> {
    const data = join(folder, 'data')
    return existsSync(data) ? findProcesses(data, this.#account) : Promise.resolve([])
  }

  /** All three run, and one standby is synchronous. Patroni's words differ between its versions. */
  async #whole(): Promise<void> {
    await until('a primary with two standbys', async () => {
      const members = await this.#members()
      const count = (pattern: RegExp): number =>
        members.filter(({ role, state }) => pattern.test(`${role} ${state}`)).length
      return (
        members.length === MACHINES &&
        count(/^(leader|primary|master) running$/) === 1 &&
        count(/^(sync_standby|replica) (running|streaming)$/) === MACHINES - 1 &&
        count(/^sync_standby /) > 0
      )
    })
  }

  async #primary(): Promise<Machine | null> {
    const leader = (await this.#members()).find(({ role }) => /^(leader|primary|master)$/.test(role))
    return this.#machines.find(({ name }) => name === leader?.name) ?? null
  }

  /** The view of the first machine that responds. */
  async #members(): Promise<Member[]> {
    for (const { ports } of this.#machines) {
      try {
        const response = await fetch(`http://127.0.0.1:${ports.rest}/cluster`, { signal: AbortSignal.timeout(2_000) })
        return ((await response.json()) as { members: Member[] }).members
      } catch {
        // The machine is off.
      }
    }
    return []
  }

  async #makeDatabase(): Promise<void> {
    const { ports } = (await this.#primary())!
    const client = new pg.Client({ connectionString: superuserUrl(ports.postgres) })
    await client.connect()
    await client.query(`create role muster login password '${PASSWORD}'`)
    await client.query('create database muster owner muster template template0')
    await client.end()
  }
}

/** Patroni checks that its ports are free, so nothing runs yet: etcd is not reachable, and all addresses are loopback's. */
function mistakesOf(env: Record<string, string>): string[] {
  const args = ['--validate-config', join(DEPLOY, 'patroni.yml')]
  const { stdout, stderr } = spawnSync('patroni', args, { env: { ...process.env, ...env }, encoding: 'utf8' })
  return `${stdout}${stderr}`
    .split('\n')
    .filter((line) => line !== '' && !/must not contain "127|is not reachable/.test(line))
}

/** The examples of deploy/postgres/, for one machine of the test. */
function environmentOf(machine: Machine, machines: readonly Machine[]): Record<string, string> {
  const text = ['patroni.env.example', 'etcd.env.example']
    .map((name) => readFileSync(join(DEPLOY, name), 'utf8'))
    .join('\n')
  const env: Record<string, string> = {}
  for (const line of text.split('\n')) {
    const { name, value } = /^(?<name>[A-Z0-9_]+)=(?<value>.*)$/.exec(line)?.groups ?? {}
    if (name !== undefined && value !== undefined) env[name] = valueFor(value, machine, machines)
  }
  return {
    ...env,
    PATRONI_POSTGRESQL_BIN_DIR: findServerFolder()!,
    PATRONI_POSTGRESQL_DATA_DIR: join(machine.folder, 'data'),
    PATRONI_POSTGRESQL_PGPASS: join(machine.folder, 'pgpass'),
    ETCD_DATA_DIR: join(machine.folder, 'etcd'),
  }
}

/** `db1` and 10.0.0.1 stand for this machine where they are alone; in a list each name and address is its own. */
function valueFor(value: string, own: Machine, machines: readonly Machine[]): string {
  const addressOf = ({ ports }: Machine, port: string): string => {
    const number = { 2379: ports.etcd, 2380: ports.peer, 8008: ports.rest, 5432: ports.postgres }[port]
    return `127.0.0.1:${number}`
  }
  const is_list = value.includes(',')
  const machineOf = (digit: string): Machine => (is_list ? machines[Number(digit) - 1]! : own)
  return value
    .replace(/10\.0\.0\.(\d):(\d+)/g, (_, digit: string, port: string) => addressOf(machineOf(digit), port))
    .replace(/^db1$/, own.name)
    .replace(/change-me-\d/, PASSWORD)
}

function superuserUrl(port: number): string {
  return `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`
}

async function acceptsWrites({ ports }: Machine): Promise<boolean> {
  const client = new pg.Client({ connectionString: superuserUrl(ports.postgres), connectionTimeoutMillis: 2_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query('select pg_is_in_recovery() as is_standby')).rows[0].is_standby === false
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

function lastLines(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(-30).join('\n') : `${path} is not there`
}
