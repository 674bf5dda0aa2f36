// Players of lobbies whose seats the edge checks: they connect, reconnect and leave, and repeat what a fault interrupted.
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { findLobby } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import type { SeatResult } from './history.ts'
import { seatOf } from './load/seats.ts'
import type { FaultyPlatform } from './platform.ts'
import type { Random } from './random.ts'

/** A player who keeps trying is back before it ends, whatever was killed. */
export const SEAT_HOLD_MS = 20_000
/** Shorter than the hold, so that a seat that was lost is not taken for one that has ended. */
const CONNECT_MS_MAX = 15_000
const ATTEMPT_MS_MAX = 12_000
const FIND_ATTEMPTS_MAX = 300
const PAUSE_MS = 200
const PLAY_MS_MAX = 3_000
const ABSENCE_MS_MAX = 500
const RECONNECT_CHANCE = 0.4
const LEAVE_CHANCE = 0.1
const STAY_CHANCE = 0.5

/**
 * A server that reads PROXY headers and has no other knowledge of the platform. Its HTTP port lists the players that have
 * connections at the moment, one entry for each connection.
 */
export const LISTING_SERVER = `
import { createServer as createHttp } from 'node:http'
import { createServer } from 'node:net'
const { PORT_RAW, PORT_WEB, HOST } = process.env
const players = new Map()
createServer((socket) => {
  let bytes = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('close', () => players.delete(socket))
  socket.on('data', (chunk) => {
    if (players.has(socket)) return void socket.write(chunk)
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.length < 16 || bytes.length < 16 + bytes.readUInt16BE(14)) return
    const end = 16 + bytes.readUInt16BE(14)
    let at = 16 + (bytes[13] >> 4 === 1 ? 12 : 36)
    while (bytes[at] !== 5) at += 3 + bytes.readUInt16BE(at + 1)
    players.set(socket, bytes.toString('latin1', at + 3, at + 3 + bytes.readUInt16BE(at + 1)))
    if (end < bytes.length) socket.write(bytes.subarray(end))
  })
}).listen(PORT_RAW, HOST)
createHttp((request, response) => response.end(JSON.stringify([...players.values()]))).listen(PORT_WEB, HOST)
process.on('SIGTERM', () => process.exit(0))
`

export type EdgeSeat = SeatResult & { raw_url: string; web_url: string }

/** What players know of the faults: a hold begins when the edge is back, so a player's time begins then too. */
export class Faults {
  #under_way = 0
  #end_ms = 0

  /** `fault` resolves when the platform is whole again. */
  async during(fault: Promise<void>): Promise<void> {
    this.#under_way++
    try {
      await fault
    } finally {
      this.#under_way--
      this.#end_ms = performance.now()
    }
  }

  /** Milliseconds since `start_ms` or the end of the last fault, whichever is later. 0 during a fault. */
  calmSince(start_ms: number): number {
    return this.#under_way > 0 ? 0 : performance.now() - Math.max(start_ms, this.#end_ms)
  }
}

export class EdgePlayer {
  readonly #platform: FaultyPlatform
  readonly #faults: Faults
  readonly #client: Client
  readonly #random: Random
  /** Of this player alone: the edge limits the connections of an address. */
  readonly #address: string
  #seat: EdgeSeat | null = null
  #socket: Socket | null = null
  /** Seats that the player has given up. */
  readonly left: string[] = []
  /** Connections that a fault ended. */
  broken_count = 0

  constructor(platform: FaultyPlatform, faults: Faults, number: number, random: Random) {
    this.#platform = platform
    this.#faults = faults
    this.#client = platform.as(platform.game.public_tokens.staging)
    this.#random = random
    this.#address = `127.1.${number >> 8}.${number & 0xff}`
  }

  /** The seat that the player keeps; null: it has left. */
  get seat(): EdgeSeat | null {
    return this.#seat
  }

  /** Plays, once it has entered, until `is_over`, and then stays or leaves. Rejects when a held seat was lost. */
  async play(is_over: () => boolean): Promise<void> {
    while (!is_over()) {
      await sleep(this.#random.int(PLAY_MS_MAX))
      if (this.#random.chance(LEAVE_CHANCE)) {
        this.#leave()
        await this.enter()
      } else if (this.#random.chance(RECONNECT_CHANCE)) {
        this.#drop()
        await sleep(this.#random.int(ABSENCE_MS_MAX))
        await this.#connect()
      } else await this.#stay()
    }
    if (this.#random.chance(STAY_CHANCE)) await this.#stay()
    else this.#leave()
  }

  async enter(): Promise<void> {
    this.#seat = await this.#find()
    await this.#connect()
  }

  /** Connects within the hold, however often it takes and whatever is killed meanwhile. */
  async #connect(): Promise<void> {
    const start_ms = performance.now()
    while (!(await this.#connectOnce())) {
      if (this.#faults.calmSince(start_ms) > CONNECT_MS_MAX)
        throw new Error(`player ${this.#seat?.player_id} has lost a held seat`)
      await sleep(PAUSE_MS)
    }
  }

  end(): void {
    this.#drop()
  }

  async #stay(): Promise<void> {
    if (this.#socket !== null) return
    this.broken_count++
    await this.#connect()
  }

  #leave(): void {
    this.#drop()
    if (this.#seat !== null) this.left.push(this.#seat.player_id)
    this.#seat = null
  }

  #drop(): void {
    this.#socket?.destroy()
    this.#socket = null
  }

  async #find(): Promise<EdgeSeat> {
    // One key for all attempts: a lost response does not take a second seat.
    const options = { headers: { 'idempotency-key': randomUUID() } }
    for (let attempt = 1; ; attempt++) {
      try {
        const found = await this.#client.call(findLobby, { body: { game_modes: ['default'] }, ...options })
        const { raw, web } = found.ports
        return { ...seatOf(this.#platform, found), raw_url: raw!.url, web_url: web!.url }
      } catch (error) {
        if (attempt === FIND_ATTEMPTS_MAX) throw error
        await sleep(PAUSE_MS)
      }
    }
  }

  /** Whether the server has returned the player's bytes. */
  async #connectOnce(): Promise<boolean> {
    const { raw_url, token } = this.#seat!
    const { hostname, port } = new URL(raw_url)
    const socket = connect({ host: hostname, port: Number(port), localAddress: this.#address })
    socket.on('error', () => {})
    socket.write(`${token}\nhello`)
    const is_connected = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), ATTEMPT_MS_MAX)
      const finish = (is_ok: boolean): void => {
        clearTimeout(timer)
        resolve(is_ok)
      }
      socket.once('data', () => finish(true)).once('close', () => finish(false))
    })
    if (!is_connected || socket.destroyed) {
      socket.destroy()
      return false
    }
    this.#socket = socket
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = null
    })
    return true
  }
}
