// Measures the start of a container image against the start of an archive with the same program, by the runner's driver,
// without the networks of lobbies. A start is over when the program, which ends at once, has ended. Needs root,
// bubblewrap and a static busybox.
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '@musterhost/server/ids'
import { createLog } from '@musterhost/server/observe/log'
import type { Driver, RunSpec } from '@musterhost/server/runner/drivers/driver'
import { openProcessDriver } from '@musterhost/server/runner/drivers/process/process'
import { verdict } from '../report.ts'

const ROUNDS = 60
const WARM_UP = 10
/** Time between two starts, in which the driver prepares the next monitor. */
const PAUSE_MS = 100
const MORE_MS_GOAL = 20
const TIER = { cpu_cores: 1, memory_bytes: 256 * 1024 ** 2, pids_max: 64, tmp_bytes: 2 ** 26, disk_bytes: 2 ** 34 }

type Program = Pick<RunSpec, 'build_folder' | 'args' | 'image'>

export async function run(): Promise<void> {
  const data_dir = mkdtempSync(join(tmpdir(), 'muster-bench-'))
  chmodSync(data_dir, 0o711)
  const ends = new Map<string, () => void>()
  const driver = await openProcessDriver({
    ...{ data_dir, sandbox: 'required', network: null, now: Date.now, ended_kept_ms: null, ended_bytes_max: null },
    log: createLog({ who: 'bench', level: 'warn' }),
    onEnd: (lobby_id) => ends.get(lobby_id)?.(),
  })
  try {
    const programs = makePrograms(data_dir)
    const times: Record<string, number[]> = { archive: [], image: [] }
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      for (const [name, program] of Object.entries(programs)) {
        const elapsed_ms = await startOnce(driver, ends, program)
        if (round >= WARM_UP) times[name]!.push(elapsed_ms)
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
    }
    const [archive, image] = [median(times.archive!), median(times.image!)]
    console.log(`  archive: ${archive.toFixed(1)} ms, image: ${image.toFixed(1)} ms (medians of ${ROUNDS})`)
    verdict('start of an image, in ms more than of an archive', image - archive, MORE_MS_GOAL, 'at most')
  } finally {
    await driver.sweep()
    await driver.close({ logger: 'end' })
    rmSync(data_dir, { recursive: true, force: true })
  }
}

/** The folders as the runner unpacks them. */
function makePrograms(data_dir: string): Record<'archive' | 'image', Program> {
  const busybox = execFileSync('which', ['busybox'], { encoding: 'utf8' }).trim()
  const folders = ['archive', 'image'].map((name) => join(data_dir, 'builds', name)) as [string, string]
  for (const folder of folders) {
    for (const name of ['bin', 'etc', 'proc', 'dev', 'sys', 'tmp', 'scratch']) {
      mkdirSync(join(folder, name), { recursive: true })
    }
    copyFileSync(busybox, join(folder, 'bin/busybox'))
    for (const name of ['hosts', 'resolv.conf']) copyFileSync('/dev/null', join(folder, 'etc', name))
  }
  const args = ['bin/busybox', 'true']
  const image = { uid: 0, gid: 0, working_folder: '/', stop_signal: 'SIGTERM' } as const
  return { archive: { build_folder: folders[0], args }, image: { build_folder: folders[1], args, image } }
}

async function startOnce(driver: Driver, ends: Map<string, () => void>, program: Program): Promise<number> {
  const lobby_id = newId(Date.now())
  const ended = new Promise<void>((resolve) => ends.set(lobby_id, resolve))
  const started_ms = performance.now()
  const started = await driver.start({ lobby_id, env: {}, tier: TIER, ...program })
  if ('refused' in started) throw new Error(started.message)
  await ended
  const elapsed_ms = performance.now() - started_ms
  const exit = await driver.exit(started.handle)
  if (exit !== null && exit.exit_code !== 0) throw new Error(`The program ended with ${JSON.stringify(exit)}.`)
  ends.delete(lobby_id)
  return elapsed_ms
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}
