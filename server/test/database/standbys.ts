// A PostgreSQL with standbys, of the embedded programs: real servers on loopback, streaming replication, commits that wait for
// any one standby. The test plays the operator: it kills a server, promotes the standby that has most, makes a killed one a
// standby again.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, chown, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { findAccount } from '../../src/database/embedded/account.ts'
import { type Binaries, findBinaries } from '../../src/database/embedded/binaries.ts'
import { findProcesses, sendSignal } from '../../src/database/embedded/processes.ts'
import { type Account, PROGRAM_ENVIRONMENT, requireProgram } from '../../src/database/embedded/program.ts'
import type { TestCertificate } from '../support/certificates.ts'
import { freePorts } from '../support/free-ports.ts'
import { until } from '../support/until.ts'
import { silent } from './harness.ts'

const SETTINGS = {
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '32MB',
  // A killed process loses nothing without it; only a crash of the machine would.
  fsync: 'off',
  wal_keep_size: '1GB',
  hot_standby: 'on',
  log_min_messages: 'log',
}

/** Where a server runs, and the words before a command that runs it there. */
export type Place = { address: string; enter: readonly string[] }

const LOOPBACK: Place = { address: '127.0.0.1', enter: [] }

type Server = { folder: string; place: Place; port: number; process: ChildProcess | null }

export class Standbys {
  readonly #folder: string
  readonly #binaries: Binaries
  readonly #account: Account
  readonly #servers: Server[]
  #primary = 0

  private constructor(folder: string, parts: { binaries: Binaries; account: Account; servers: Server[] }) {
    this.#folder = folder
    this.#binaries = parts.binaries
    this.#account = parts.account
    this.#servers = parts.servers
  }

  /** A primary and `count - 1` standbys, with the empty database `muster`; on loopback, or on the machines of a cluster. */
  static async start(count: number, places: readonly Place[] = []): Promise<Standbys> {
    const folder = await mkdtemp(join(tmpdir(), 'muster-standbys-'))
    const account = await findAccount(folder, silent)
    if (account !== null) await chown(folder, account.uid, account.gid)
    const ports = await freePorts(count)
    const servers = ports.map((port, index) => {
      return { folder: join(folder, String(index)), place: places[index] ?? LOOPBACK, port, process: null }
    })
    const cluster = new Standbys(folder, { binaries: await findBinaries(), account, servers })
    try {
      await cluster.#make()
      for (let index = 1; index < count; index++) await cluster.join(index)
    } catch (error) {
      await cluster.stop()
      throw error
    }
    return cluster
  }

  /** Of all servers, as an operator writes it. */
  get url(): string {
    const hosts = this.#servers.map(({ place, port }) => `${place.address}:${port}`).join(',')
    return `postgres://muster@${hosts}/muster?target_session_attrs=read-write`
  }

  get primary(): number {
    return this.#primary
  }

  get standbys(): number[] {
    return [...this.#servers.keys()].filter(
      (index) => index !== this.#primary && this.#servers[index]!.process !== null,
    )
  }

  urlOf(index: number): string {
    const { place, port } = this.#servers[index]!
    return `postgres://muster@${place.address}:${port}/muster`
  }

  /** One statement as the superuser, on one server. */
  async ask<R extends pg.QueryResultRow>(index: number, statement: string, values: unknown[] = []): Promise<R[]> {
    const client = new pg.Client({
      connectionString: superuserUrl(this.#servers[index]!),
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return (await client.query<R>(statement, values)).rows
    } finally {
      await client.end()
    }
  }

  /** All processes of a server at once, as when its machine loses power. */
  async kill(index: number): Promise<void> {
    const server = this.#servers[index]!
    await this.signal(index, 'SIGKILL')
    await until('a killed server to be gone', async () => (await this.#processesOf(server)).length === 0)
    server.process = null
  }

  /** SIGSTOP: the server is there and does not respond. SIGCONT ends that. */
  async signal(index: number, signal: NodeJS.Signals): Promise<void> {
    for (const id of await this.#processesOf(this.#servers[index]!)) sendSignal(id, signal)
  }

  /** From now on the server offers TLS with this certificate to new connections, or none. */
  async offerTls(index: number, certificate: TestCertificate | null): Promise<void> {
    const { folder } = this.#servers[index]!
    if (certificate !== null) {
      for (const [name, text] of [
        ['server.crt', certificate.cert],
        ['server.key', certificate.key],
      ] as const) {
        const path = join(folder, name)
        await writeFile(path, text, { mode: 0o600 })
        if (this.#account !== null) await chown(path, this.#account.uid, this.#account.gid)
      }
    }
    await this.ask(index, `alter system set ssl = ${certificate === null ? 'off' : 'on'}`)
    const [before] = await this.ask<{ loaded: string }>(index, 'select pg_conf_load_time()::text as loaded')
    await this.ask(index, 'select pg_reload_conf()')
    // The postmaster reads the files before it accepts the connection that sees the new time.
    await until('the server to read its settings', async () => {
      const [now] = await this.ask<{ loaded: string }>(index, 'select pg_conf_load_time()::text as loaded')
      return now!.loaded !== before!.loaded
    })
  }

  /** Promotes the standby that has most: each acknowledged commit is on one of them. The others follow it. */
  async promote(): Promise<number> {
    const standbys = this.standbys
    const positions = await Promise.all(
      standbys.map(async (index) => {
        const [row] = await this.ask<{ bytes: string }>(
          index,
          `select pg_wal_lsn_diff(coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0') as bytes`,
        )
        return { index, bytes: BigInt(row!.bytes) }
      }),
    )
    const best = positions.reduce((one, other) => (other.bytes > one.bytes ? other : one)).index
    await this.ask(best, 'select pg_promote()')
    this.#primary = best
    for (const index of standbys) {
      if (index === best) continue
      await this.ask(index, `alter system set primary_conninfo = '${this.#conninfo(index)}'`)
      await this.ask(index, 'select pg_reload_conf()')
    }
    return best
  }

  /** Copies the primary, and starts the copy as its standby. Resolves when it streams. */
  async join(index: number): Promise<void> {
    const server = this.#servers[index]!
    await rm(server.folder, { recursive: true, force: true })
    const client = new pg.Client({ connectionString: superuserUrl(this.#servers[this.#primary]!) })
    await client.connect()
    try {
      await client.query("select pg_backup_start('copy', true)")
      await cp(this.#servers[this.#primary]!.folder, server.folder, {
        recursive: true,
        // Files that vanish while they are listed, and those of the running server.
        filter: (path) => !/\/(postmaster\.(pid|opts)|pg_stat_tmp|pgsql_tmp|standby\.signal)/.test(path),
      })
      const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
      await writeFile(join(server.folder, 'backup_label'), rows[0]!.labelfile)
    } finally {
      await client.end()
    }
    await writeFile(join(server.folder, 'standby.signal'), '')
    await writeFile(join(server.folder, 'postgresql.auto.conf'), this.#ownSettings(index))
    if (this.#account !== null) {
      await requireProgram('chown', ['-R', `${this.#account.uid}:${this.#account.gid}`, server.folder])
    }
    await this.#run(server)
    await until('a standby to stream', async () => {
      const sql = "select 1 from pg_stat_replication where application_name = $1 and state = 'streaming'"
      return (await this.ask(this.#primary, sql, [`server${index}`])).length === 1
    })
  }

  async stop(): Promise<void> {
    for (const index of this.#servers.keys()) await this.kill(index)
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #make(): Promise<void> {
    const first = this.#servers[0]!
    await mkdir(first.folder, { mode: 0o700 })
    if (this.#account !== null) await chown(first.folder, this.#account.uid, this.#account.gid)
    const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    await requireProgram(
      this.#binaries.initdb,
      [`--pgdata=${first.folder}`, '--username=postgres', '--auth=trust', '--no-sync', ...locale],
      { account: this.#account, folder: first.folder },
    )
    const access = ['host all all samenet trust', 'host replication all samenet trust']
    await appendFile(join(first.folder, 'pg_hba.conf'), `${access.join('\n')}\n`)
    await this.#run(first)
    const client = new pg.Client({ connectionString: superuserUrl(first, 'postgres') })
    await client.connect()
    await client.query('create role muster login')
    await client.query('create database muster owner muster')
    await client.query("alter system set synchronous_standby_names = 'ANY 1 (*)'")
    await client.query('select pg_reload_conf()')
    await client.end()
  }

  async #run(server: Server): Promise<void> {
    const settings = { ...SETTINGS, listen_addresses: server.place.address, port: String(server.port) }
    const account = this.#account
    const user = account === null ? [] : [`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups']
    const [program, ...args] = [
      ...server.place.enter,
      // It ends with this process, whichever way that ends.
      ...['setpriv', ...user, '--pdeathsig', 'KILL'],
      this.#binaries.postgres,
      ...['-D', server.folder],
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ]
    server.process = spawn(program!, args, {
      cwd: '/',
      env: PROGRAM_ENVIRONMENT,
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    })
    let said = ''
    server.process.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      said = (said + chunk).slice(-10_000)
    })
    const ended = once(server.process, 'exit').then(() => {
      throw new Error(`PostgreSQL ended:\n${said}`)
    })
    ended.catch(() => undefined)
    await Promise.race([
      ended,
      until('PostgreSQL to accept connections', () => accepts(superuserUrl(server, 'postgres'))),
    ])
  }

  #processesOf(server: Server): Promise<number[]> {
    return findProcesses(server.folder, this.#account)
  }

  #conninfo(index: number): string {
    const { place, port } = this.#servers[this.#primary]!
    return `host=${place.address} port=${port} user=postgres application_name=server${index}`
  }

  #ownSettings(index: number): string {
    return `synchronous_standby_names = 'ANY 1 (*)'\nprimary_conninfo = '${this.#conninfo(index)}'\n`
  }
}

function superuserUrl({ place, port }: Server, name = 'muster'): string {
  return `postgres://postgres@${place.address}:${port}/${name}`
}

async function accepts(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
