// The keys of TLS session tickets. With a ticket, a client that comes back skips the signature and the certificate of a handshake.
// All edge processes of a data folder have the same key, so a ticket is good at each of them, and after a restart.
//
// A key is a file, which is removed at its end. Who gets the folder later cannot read recorded connections of TLS 1.2, whose tickets
// hold their secrets.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Server } from 'node:tls'
import type { Context } from '../../context.ts'
import { placeFile } from '../../process-tls/place-file.ts'

/** Lifetime of a key. At its end all tickets are refused, and their clients do a full handshake. */
export const TICKET_KEY_MS = 12 * 3_600_000
/** The wall clock may be stepped, so a key is chosen again at least this often. */
const CHECK_MS = 3_600_000
/** The size that OpenSSL requires: name, MAC and cipher, 16 bytes each. */
const KEY_BYTES = 48

/** `sessionTimeout`: seconds for which a ticket is good. `sessionIdContext`: the same in all processes and versions. */
export const TICKET_OPTIONS = { sessionTimeout: 7_200, sessionIdContext: 'muster' }

type TicketServer = Pick<Server, 'setTicketKeys'>

export class TicketKeys {
  readonly #ctx: Pick<Context, 'now' | 'log'>
  readonly #folder: string
  readonly #servers = new Set<TicketServer>()
  #name: string | null = null
  #key: Buffer | null = null
  #timer: NodeJS.Timeout | undefined

  /** `folder`: of the edge, for its own user only. */
  constructor(ctx: Pick<Context, 'now' | 'log'>, folder: string) {
    this.#ctx = ctx
    this.#folder = join(folder, 'ticket-keys')
    this.#choose()
  }

  /** Gives the server each key from now on. Without a folder that can be written, the server has keys of its own. */
  keep<S extends TicketServer>(server: S): S {
    this.#servers.add(server)
    if (this.#key !== null) server.setTicketKeys(this.#key)
    return server
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#servers.clear()
  }

  #choose(): void {
    const now_ms = this.#ctx.now()
    const window = Math.floor(now_ms / TICKET_KEY_MS)
    const left_ms = (window + 1) * TICKET_KEY_MS - now_ms
    this.#timer = setTimeout(() => this.#choose(), Math.min(left_ms, CHECK_MS)).unref()
    if (this.#name === String(window)) return
    try {
      const key = openKey(this.#folder, String(window))
      this.#name = String(window)
      this.#key = key
      for (const server of this.#servers) server.setTicketKeys(key)
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'the key of TLS session tickets cannot be read or written; trying again')
    }
  }
}

/** The key of this name, made by the first process that asks for it. The files of other names are removed. */
function openKey(folder: string, name: string): Buffer {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const file of readdirSync(folder)) if (file.split('.')[0] !== name) rmSync(join(folder, file), { force: true })
  const path = join(folder, name)
  if (!existsSync(path)) placeFile(path, randomBytes(KEY_BYTES))
  return readFileSync(path)
}
