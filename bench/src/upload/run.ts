// Measures bytes per second of an upload: a presigned PUT to the main address, through edge, api, disk and database. It is
// compared with the same bytes streamed straight into a file, with one fsync at the end; both take turns. The memory of
// edge and api is measured too: it must not grow with the length of the file.
import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGame, createGameBuild, createGroup, deleteGameBuild } from '@musterhost/contract'
import { median } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'

const MIB = 1024 * 1024
const ROUNDS = 7
const WARM_UP_ROUNDS = 2
const ROUND_BYTES = 256 * MIB
const RATE_GOAL = 0.8
const SHORT_BYTES = 64 * MIB
const LONG_BYTES = 1024 * MIB
/** Part of the peak at 64 MiB: the variation that garbage collection causes. */
const MEMORY_GOAL = 1.25
const PIECE_BYTES = 64 * 1024
const ROLES = ['api', 'edge'] as const

export async function run(): Promise<void> {
  const platform = await startPlatform(ROLES)
  try {
    const game_id = await newGame(platform)
    await compareRates(platform, game_id)
    await compareMemory(platform, game_id)
  } finally {
    await platform.stop()
  }
}

async function compareRates(platform: BenchPlatform, game_id: string): Promise<void> {
  const file = join(platform.config.data_dir, 'plain.bin')
  const rates = { upload: [] as number[], plain: [] as number[] }
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    const order = round % 2 === 0 ? (['upload', 'plain'] as const) : (['plain', 'upload'] as const)
    for (const who of order) {
      const elapsed_ms =
        who === 'plain' ? await writePlainly(file, ROUND_BYTES) : await upload(platform, game_id, ROUND_BYTES)
      if (round >= WARM_UP_ROUNDS) rates[who].push(ROUND_BYTES / MIB / (elapsed_ms / 1_000))
    }
  }
  console.log(`\n  ${ROUND_BYTES / MIB} MiB, ${ROUNDS} rounds: median MiB per second (all)`)
  for (const who of ['plain', 'upload'] as const) {
    const name = who === 'plain' ? 'a file, fsync at its end' : 'PUT by way of the edge'
    console.log(`  ${name.padEnd(26)}${median(rates[who]).toFixed(0)} (${rates[who].map(Math.round).join(' ')})`)
  }
  const ratio = median(rates.upload.map((rate, round) => rate / rates.plain[round]!))
  verdict('upload / plain stream to disk', ratio, RATE_GOAL, 'at least')
}

async function compareMemory(platform: BenchPlatform, game_id: string): Promise<void> {
  const peaks: Record<string, number[]> = { api: [], edge: [] }
  for (const bytes of [SHORT_BYTES, LONG_BYTES]) {
    for (const role of ROLES) await forgetPeak(platform.processes[role]!.pid!)
    await upload(platform, game_id, bytes)
    for (const role of ROLES) peaks[role]!.push(await peakMib(platform.processes[role]!.pid!))
  }
  console.log(`\n  peak memory of the process while ${SHORT_BYTES / MIB} and ${LONG_BYTES / MIB} MiB arrive, MiB`)
  for (const role of ROLES) {
    const [short, long] = peaks[role] as [number, number]
    console.log(`  ${role.padEnd(5)}${short.toFixed(0)} ${long.toFixed(0)}`)
    verdict(`${role}: peak at ${LONG_BYTES / MIB} / at ${SHORT_BYTES / MIB} MiB`, long / short, MEMORY_GOAL, 'at most')
  }
}

/** Bytes that are cheap to make and cannot be compressed, in pieces of the size in which a file is read. */
function newSource(bytes: number): Readable {
  const piece = randomBytes(PIECE_BYTES)
  let left = bytes
  return new Readable({
    highWaterMark: PIECE_BYTES,
    read() {
      const length = Math.min(left, piece.length)
      left -= length
      this.push(length === 0 ? null : piece.subarray(0, length))
    },
  })
}

/** Returns the duration in milliseconds. */
async function writePlainly(path: string, bytes: number): Promise<number> {
  const started = performance.now()
  await pipeline(newSource(bytes), createWriteStream(path, { flush: true }))
  const elapsed_ms = performance.now() - started
  await rm(path)
  return elapsed_ms
}

/** The same for the PUT alone. Preparation and removal are not measured. */
async function upload({ api }: BenchPlatform, game_id: string, bytes: number): Promise<number> {
  const { build_id, image_presigned_request } = await api.call(createGameBuild, {
    params: { game_id },
    body: {
      display_name: 'Bench',
      image_tag: 'bench:1',
      image_file: { path: 'image.tar', content_length: bytes },
      kind: 'docker_image',
      compression: 'none',
    },
  })
  const started = performance.now()
  await put(image_presigned_request!.url, bytes)
  const elapsed_ms = performance.now() - started
  await api.call(deleteGameBuild, { params: { game_id, build_id } })
  return elapsed_ms
}

async function put(url: string, bytes: number): Promise<void> {
  const outgoing = request(url, { method: 'PUT', headers: { 'content-length': bytes } })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve).once('error', reject)
  })
  await pipeline(newSource(bytes), outgoing)
  const answer = await answered
  const said = await text(answer)
  if (answer.statusCode !== 200) throw new Error(`the upload was refused: ${said}`)
}

async function newGame({ api }: BenchPlatform): Promise<string> {
  const { group_id } = await api.call(createGroup, { body: { display_name: 'Bench' } })
  const body = { display_name: 'Bench', name_id: 'bench', developer_group_id: group_id }
  return (await api.call(createGame, { body })).game_id
}

/** proc(5): the peak of the resident set begins again at what is resident now. */
function forgetPeak(process_id: number): Promise<void> {
  return writeFile(`/proc/${process_id}/clear_refs`, '5')
}

async function peakMib(process_id: number): Promise<number> {
  const status = await readFile(`/proc/${process_id}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}
