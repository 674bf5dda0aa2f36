// Limits per client that hold over all edge processes of a machine. Each process writes its own counts into a file, and reads the
// files of the others: memory of the system, which no process has to be asked for. A count is written before those of the others are
// read. So two processes that count at the same moment see each other, and together never exceed a limit.
//
// Counts are written in blocks of 5 % of a limit over all processes, and the first block is not written. So a client that holds little
// costs nothing, and a request costs nothing but at the edge of a block. A client may have up to 10 % less than its limit, never more.
//
// A file ends with its process. The files of killed processes are removed by the next process that starts or refuses.
import { hash, randomBytes } from 'node:crypto'
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { SharedShare } from '../addresses/client-share.ts'
import { identityOf, isAlive, type ProcessId, readBootId } from '../node/procfs.ts'
import { placeFile } from '../process-tls/place-file.ts'

/** The share of a limit that all blocks of all processes are. */
const BLOCK_SHARE = 0.05
/** Clients with written counts: buckets by their hash, and entries of a bucket. */
const BUCKETS = 2_048
const ENTRIES = 8
/** A tag and a count, 4 bytes each. */
const ENTRY_BYTES = 8
const BUCKET_BYTES = ENTRIES * ENTRY_BYTES
const SEED_FILE = 'seed'
const SEED_BYTES = 16
/** Two changes of a folder within one tick of the kernel's clock may have the same time. */
const TICK_NS = 20_000_000n
/** Milliseconds between two searches for killed processes, however many requests are refused. */
const SEARCH_PAUSE_MS = 100
const FILE_NAME = /^(\d+)-(\d+)$/

/**
 * `count`: edge processes of the machine. `is_successor`: this process takes connections over. `own`: the process whose counts these
 * are; by default this one.
 */
type CountsOptions = { count: number; is_successor: boolean; now: () => number; own?: ProcessId | null }

type Written = { level: number; bucket: number; entry: number; tag: number }

export class SharedCounts {
  /** While connections are taken over, the process that gives them counts them too. */
  is_taking: boolean
  readonly #folder: string
  readonly #now: () => number
  readonly #count: number
  readonly #name: string
  readonly #fd: number
  readonly #seed: string
  /** Descriptors of the files of other processes, by their names. */
  readonly #others = new Map<string, number>()
  #folder_ns: bigint | null = null
  #searched_ms = Number.NEGATIVE_INFINITY
  readonly #written = new Map<string, Written>()
  /** By bucket: a bit for each entry of this process. */
  readonly #used = new Uint8Array(BUCKETS)
  readonly #bytes = Buffer.alloc(BUCKET_BYTES)

  private constructor(folder: string, { count, is_successor, now, own = identityOf(process.pid) }: CountsOptions) {
    if (own === null) throw new Error('This system does not name its processes.')
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    placeFile(join(folder, SEED_FILE), randomBytes(SEED_BYTES))
    this.is_taking = is_successor
    this.#folder = folder
    this.#now = now
    this.#count = count
    this.#seed = readFileSync(join(folder, SEED_FILE), 'latin1')
    this.#name = `${own.pid}-${own.start_time}`
    this.#fd = openSync(join(folder, this.#name), 'w+', 0o600)
    // With its bytes on the disk, no later write can fail.
    writeSync(this.#fd, Buffer.alloc(BUCKETS * BUCKET_BYTES))
  }

  /** Null: there is one, or its counts cannot be shared. */
  static open(folder: string, { log, ...options }: CountsOptions & { log: Logger }): SharedCounts | null {
    if (options.count === 1) return null
    try {
      return new SharedCounts(folder, options)
    } catch (error) {
      log.warn({ err: error }, 'limits per client hold for each edge process alone: its counts cannot be written')
      return null
    }
  }

  /** `kind`: what is counted, the same in all processes. */
  of(kind: string): SharedShare {
    return {
      allows: (client_key, count, max) => this.#allows(`${kind} ${client_key}`, count, max),
      left: (client_key, count, max) => this.#left(`${kind} ${client_key}`, count, max),
    }
  }

  close(): void {
    rmSync(join(this.#folder, this.#name), { force: true })
    for (const fd of [this.#fd, ...this.#others.values()]) closeSync(fd)
    this.#others.clear()
  }

  #allows(key: string, count: number, max: number): boolean {
    const block = this.#blockOf(max)
    const needed = count - block
    const before = this.#written.get(key)?.level ?? 0
    if (needed <= before) return true
    const step = Math.max(1, block)
    const level = Math.ceil(needed / step) * step
    const next = this.#write(key, level)
    if (next === null) return this.is_taking
    if (this.is_taking || this.#fits(next, max, block)) return true
    if (this.#search() && this.#fits(next, max, block)) return true
    this.#write(key, before)
    return false
  }

  #left(key: string, count: number, max: number): void {
    const written = this.#written.get(key)
    if (written === undefined) return
    const block = this.#blockOf(max)
    const step = Math.max(1, block)
    const level = Math.ceil(Math.max(0, count - block) / step) * step
    // A count that goes up and down between two requests is not written for each.
    const least = block === 0 ? 1 : 2 * step
    if (level === 0 || written.level - level >= least) this.#write(key, level)
  }

  #blockOf(max: number): number {
    return Math.floor((max * BLOCK_SHARE) / this.#count)
  }

  #fits({ level, bucket, tag }: Written, max: number, block: number): boolean {
    this.#follow()
    const levels = [...this.#others.values()].map((fd) => this.#levelIn(fd, bucket, tag))
    const sum = levels.reduce((total, other) => total + other, level)
    return sum <= max - (levels.length + 1) * block
  }

  #levelIn(fd: number, bucket: number, tag: number): number {
    readSync(fd, this.#bytes, 0, BUCKET_BYTES, bucket * BUCKET_BYTES)
    for (let entry = 0; entry < ENTRIES; entry++) {
      if (this.#bytes.readUInt32LE(entry * ENTRY_BYTES) === tag)
        return this.#bytes.readUInt32LE(entry * ENTRY_BYTES + 4)
    }
    return 0
  }

  /** Null: too many other clients of this process have the same bucket. */
  #write(key: string, level: number): Written | null {
    const written = this.#written.get(key) ?? this.#place(key)
    if (written === null) return null
    const { bucket, entry } = written
    written.level = level
    if (level === 0) {
      this.#written.delete(key)
      this.#used[bucket]! &= ~(1 << entry)
    } else {
      this.#written.set(key, written)
      this.#used[bucket]! |= 1 << entry
    }
    this.#bytes.writeUInt32LE(level === 0 ? 0 : written.tag, 0)
    this.#bytes.writeUInt32LE(level, 4)
    writeSync(this.#fd, this.#bytes, 0, ENTRY_BYTES, bucket * BUCKET_BYTES + entry * ENTRY_BYTES)
    return written
  }

  #place(key: string): Written | null {
    const digest = hash('sha256', this.#seed + key, 'buffer')
    const bucket = digest.readUInt32LE(0) % BUCKETS
    for (let entry = 0; entry < ENTRIES; entry++) {
      const is_free = (this.#used[bucket]! & (1 << entry)) === 0
      if (is_free) return { level: 0, bucket, entry, tag: digest.readUInt32LE(4) || 1 }
    }
    return null
  }

  /** Opens the files of processes that have started, and closes those that have ended, where the folder has changed. */
  #follow(): void {
    const { mtimeNs } = statSync(this.#folder, { bigint: true })
    if (mtimeNs === this.#folder_ns) return
    const is_settled = BigInt(this.#now()) * 1_000_000n - mtimeNs > TICK_NS
    this.#folder_ns = is_settled ? mtimeNs : null
    this.#openOthers()
  }

  /** Forgets processes that were killed. Returns whether it has looked now. */
  #search(): boolean {
    const now_ms = performance.now()
    if (now_ms - this.#searched_ms < SEARCH_PAUSE_MS) return false
    this.#searched_ms = now_ms
    this.#openOthers()
    return true
  }

  #openOthers(): void {
    const boot_id = readBootId()
    const names = readdirSync(this.#folder).filter((name) => name !== this.#name && FILE_NAME.test(name))
    const living = new Set(names.filter((name) => this.#isAlive(name, boot_id)))
    for (const [name, fd] of this.#others) {
      if (living.has(name)) continue
      closeSync(fd)
      this.#others.delete(name)
    }
    for (const name of living) {
      if (this.#others.has(name)) continue
      try {
        this.#others.set(name, openSync(join(this.#folder, name), 'r'))
      } catch {
        // Its process has ended just now.
      }
    }
  }

  #isAlive(name: string, boot_id: string): boolean {
    const [, pid = '', start_time = ''] = FILE_NAME.exec(name) ?? []
    if (isAlive({ pid: Number(pid), start_time, boot_id }, boot_id)) return true
    rmSync(join(this.#folder, name), { force: true })
    return false
  }
}
