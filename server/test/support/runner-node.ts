// A second node of a platform under test: a runner in a process of its own, with its own data folder, the same keys and
// stored files, and the same database.
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { ROLE_PROGRAM } from '../run/built-programs.ts'
import { endProcessesOf, temporaryFolder } from '../supervisor/started.ts'
import type { Platform } from './platform.ts'
import { until } from './until.ts'

export class RunnerNode {
  readonly name: string
  readonly folder: string
  readonly #platform: Platform
  readonly #env: Record<string, string>
  #child: ChildProcess | null = null

  private constructor(platform: Platform, name: string, folder: string, env: Record<string, string>) {
    this.#platform = platform
    this.name = name
    this.folder = folder
    this.#env = env
  }

  /** Resolves when the platform's database has its report. */
  static async start(
    t: TestContext,
    platform: Platform,
    name: string,
    env: Record<string, string> = {},
  ): Promise<RunnerNode> {
    const folder = temporaryFolder(t)
    // Its lobbies run as other users, who must find their builds.
    chmodSync(folder, 0o711)
    cpSync(join(platform.data_dir, 'keys'), join(folder, 'keys'), { recursive: true })
    symlinkSync(join(platform.data_dir, 'objects'), join(folder, 'objects'))
    const node = new RunnerNode(platform, name, folder, env)
    await node.startAgain()
    return node
  }

  async startAgain(): Promise<void> {
    const before = await this.#reportSeq()
    const { config } = this.#platform.ctx
    const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
    this.#child = spawn(process.execPath, [ROLE_PROGRAM], {
      env: {
        ...{ PATH, HOME, NODE_COMPILE_CACHE },
        MUSTER_DATA: this.folder,
        MUSTER_NODE: this.name,
        MUSTER_ROLES: 'runner',
        DATABASE_URL: config.database_url!,
        MUSTER_LOBBY_API_PORT: String(config.lobby_api_port),
        MUSTER_SANDBOX: config.sandbox,
        MUSTER_METRICS_PORT: '0',
        MUSTER_LOG_LEVEL: 'warn',
        ...this.#env,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    await until(`node ${this.name} to report`, async () => (await this.#reportSeq()) !== before)
  }

  /** To the process of the runner: its lobbies are not stopped. */
  signal(signal: NodeJS.Signals): void {
    this.#child!.kill(signal)
  }

  /** The machine is gone: every process of the node ends at once. */
  async killAll(): Promise<void> {
    this.signal('SIGKILL')
    await endProcessesOf(this.folder)
  }

  async #reportSeq(): Promise<number | null> {
    const { rows } = await this.#platform.ctx.pool.query<{ report_seq: number }>(
      'select report_seq from runners where runner_id = $1',
      [this.name],
    )
    return rows[0]?.report_seq ?? null
  }
}
