// The runner's side of the gateway of protocols: starts one when a lobby needs it, and names lobbies to it.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { send } from '@musterhost/contract/node-send'
import { isAlive, type ProcessId } from '../../node/procfs.ts'
import {
  type Attachment,
  type GatewayState,
  gatewayFolder,
  gatewayFolders,
  readAttachment,
  readState,
  removeAttachment,
  writeAttachment,
} from './attachments.ts'
import type { GatewayNews } from './gateway.ts'

const GATEWAY = fileURLToPath(new URL('./gateway.ts', import.meta.url))
const GATEWAY_FLAGS = ['--max-semi-space-size=1']
/** Time in which a gateway must have started. */
const START_MS_MAX = 20_000
const START_POLL_MS = 10

export class GatewayClient {
  readonly #lobbies_folder: string
  readonly #folder: string
  readonly #address: string
  #starting: Promise<GatewayState> | null = null

  /** `address`: of this machine, where lobbies with networks of their own come to. */
  constructor(lobbies_folder: string, address: string) {
    this.#lobbies_folder = lobbies_folder
    this.#folder = gatewayFolder(lobbies_folder)
    this.#address = address
  }

  /** To be called before the lobby's server starts. `port`: where its connections are to arrive. Throws when that fails. */
  async attach(attachment: Attachment): Promise<{ port: number }> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    writeAttachment(this.#folder, attachment)
    const { lobby_id } = attachment.facts
    try {
      const state = await this.#running()
      const { port } = (await this.#ask(state, 'POST', `/attach?lobby_id=${lobby_id}`)) as { port: number | null }
      return { port: port ?? state.port }
    } catch (error) {
      removeAttachment(this.#folder, lobby_id)
      throw error
    }
  }

  /** Whether this version's gateway serves the lobby. */
  isAttached(lobby_id: string): boolean {
    return readAttachment(this.#folder, lobby_id) !== null
  }

  /** The lobby has a process. Without this call, the gateway still serves it. */
  async started(lobby_id: string, { pid, start_time, boot_id }: ProcessId): Promise<void> {
    const query = new URLSearchParams({ lobby_id, pid: String(pid), start_time, boot_id })
    const state = this.#state()
    if (state !== null) await this.#ask(state, 'POST', `/started?${query}`)
  }

  /** Starts the gateway again if it has died while it had lobbies. */
  async ensure(): Promise<void> {
    await this.#running()
  }

  async news(): Promise<GatewayNews[]> {
    const state = this.#state()
    return state === null ? [] : ((await this.#ask(state, 'GET', '/news')) as { news: GatewayNews[] }).news
  }

  /** Ends the gateways of all versions, after the last lobby. */
  async end(): Promise<void> {
    for (const folder of gatewayFolders(this.#lobbies_folder)) {
      const state = livingIn(folder)
      if (state !== null) await this.#ask(state, 'POST', '/end').catch(() => undefined)
    }
  }

  /** Null: none runs. */
  #state(): GatewayState | null {
    return livingIn(this.#folder)
  }

  #running(): Promise<GatewayState> {
    const state = this.#state()
    if (state !== null) return Promise.resolve(state)
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null
    })
    return this.#starting
  }

  async #start(): Promise<GatewayState> {
    const compiled = getCompileCacheDir()
    const errors = openSync(join(this.#folder, 'gateway.err'), 'w', 0o600)
    const child = spawn(process.execPath, [...GATEWAY_FLAGS, GATEWAY, this.#folder, this.#address], {
      detached: true,
      stdio: ['ignore', 'ignore', errors],
      env: { ...(compiled !== undefined && { NODE_COMPILE_CACHE: dirname(compiled) }) },
      cwd: '/',
    })
    closeSync(errors)
    child.on('error', () => undefined)
    child.unref()
    const until_ms = performance.now() + START_MS_MAX
    while (performance.now() < until_ms && !hasEnded(child)) {
      const state = this.#state()
      if (state !== null && state.process.pid === child.pid) return state
      await sleep(START_POLL_MS)
    }
    throw new Error(`the gateway of protocols did not start; ${join(this.#folder, 'gateway.err')} says why`)
  }

  async #ask({ control_port, secret }: GatewayState, method: string, path: string): Promise<unknown> {
    const headers = { authorization: `Bearer ${secret}` }
    const url = `http://127.0.0.1:${control_port}${path}`
    const { status, text } = await send(url, { method, headers, body: null, signal: null })
    if (status !== 200) throw new Error(`the gateway of protocols refused: ${text}`)
    return JSON.parse(text)
  }
}

function livingIn(folder: string): GatewayState | null {
  const state = readState(folder)
  return state !== null && isAlive(state.process) ? state : null
}

function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null
}
