// `npm run bench idle [SECONDS]`: measures a platform without players. It runs the built programs as `npm start` does, with the
// arena in one lobby, whose only player has left, and reads from the kernel what each process uses.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findLobby } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { freePorts } from '../platform.ts'
import { verdict } from '../report.ts'
import { type Sample, sampleProcesses } from './processes.ts'

const BUILD = fileURLToPath(new URL('../../../scripts/build.ts', import.meta.url))
const PROGRAM = fileURLToPath(new URL('../../../dist/programs/muster.js', import.meta.url))
const DEPLOY = fileURLToPath(new URL('../../../examples/arena/deploy.ts', import.meta.url))
const SECONDS_DEFAULT = 60
const SECONDS_MAX = 3_600
/** Until the traces of the start are gone: unused database connections, first statistics. */
const SETTLE_MS = 45_000
/** The lobby must outlast the measurement. */
const IDLE_GRACE_MS = 3_600_000
const READY_MS_MAX = 120_000
const MEMORY_MB_GOAL = 350
const CPU_PERCENT_GOAL = 1

export async function run(): Promise<void> {
  const seconds = Number(process.argv[3] ?? SECONDS_DEFAULT)
  if (!(seconds > 0 && seconds <= SECONDS_MAX)) throw new Error(`npm run bench idle [SECONDS, at most ${SECONDS_MAX}]`)
  const build = spawnSync(process.execPath, [BUILD, '--when-stale'], { stdio: 'inherit' })
  if (build.status !== 0) throw new Error('the programs could not be built')
  const folder = mkdtempSync(join(tmpdir(), 'muster-idle-'))
  const { platform, url } = await startMuster(folder)
  try {
    const lobby_id = await leaveOneLobby(folder, url)
    await delay(SETTLE_MS)
    const words = [folder, lobby_id]
    const [before, begin_ms] = [sampleProcesses(words), performance.now()]
    await delay(seconds * 1_000)
    const after = sampleProcesses(words)
    if (platform.exitCode !== null || platform.signalCode !== null) throw new Error('the platform has ended')
    if (sampleProcesses([lobby_id]).size === 0) throw new Error('the lobby has ended')
    report(before, after, performance.now() - begin_ms)
  } finally {
    if (platform.exitCode === null && platform.signalCode === null) {
      const ended = new Promise((resolve) => platform.once('exit', resolve))
      platform.kill('SIGINT')
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startMuster(folder: string): Promise<{ platform: ChildProcess; url: string }> {
  const [api, matchmaker, lobby_api, http, https, metrics] = await freePorts(6)
  const { PATH, HOME } = process.env
  const platform = spawn(process.execPath, [PROGRAM, 'start'], {
    env: {
      PATH,
      HOME,
      MUSTER_DATA: folder,
      MUSTER_API_PORT: String(api),
      MUSTER_MATCHMAKER_PORT: String(matchmaker),
      MUSTER_LOBBY_API_PORT: String(lobby_api),
      MUSTER_EDGE_HTTP_PORT: String(http),
      MUSTER_EDGE_HTTPS_PORT: String(https),
      // Of four ports in a row. Metrics are on by default, and cost something.
      MUSTER_METRICS_PORT: String(metrics),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  const ready = new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`not ready:\n${output}`)), READY_MS_MAX)
    platform.once('exit', () => reject(new Error(`muster start ended:\n${output}`)))
    platform.stdout!.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (!/^ready/m.test(output)) return
      clearTimeout(late)
      resolve()
    })
  })
  await ready
  return { platform, url: `http://localhost:${http}` }
}

/** Deploys the arena, plays it for a moment, and leaves. Returns the lobby's id. */
async function leaveOneLobby(folder: string, url: string): Promise<string> {
  const play_url = await deploy(url, readFileSync(join(folder, 'admin-token'), 'utf8').trim())
  const player = createClient({ url, headers: { origin: new URL(play_url).origin } })
  const seat = await player.call(findLobby, { body: { game_modes: ['default'] } })
  const socket = new WebSocket(`${seat.ports.game!.url.replace(/^http/, 'ws')}?token=${seat.player.token}&name=idle`)
  await new Promise((resolve, reject) => {
    socket.onmessage = resolve
    socket.onerror = () => reject(new Error('the lobby refused the player'))
  })
  const closed = new Promise((resolve) => {
    socket.onclose = resolve
  })
  socket.close()
  await closed
  return seat.lobby.lobby_id
}

async function deploy(url: string, token: string): Promise<string> {
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, [DEPLOY, '--name', 'idle', '--idle-grace-ms', String(IDLE_GRACE_MS)], {
    env: { PATH, HOME, MUSTER_URL: url, MUSTER_TOKEN: token },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`the arena could not be deployed:\n${output}`)
  return (JSON.parse(output.trim().split('\n').at(-1)!) as { play_url: string }).play_url
}

function report(before: Map<number, Sample>, after: Map<number, Sample>, elapsed_ms: number): void {
  const rows = [...after.values()].map((sample) => {
    const first = before.get(sample.pid)
    return {
      name: sample.name,
      pss_mb: sample.pss_mb,
      cpu_percent: ((sample.cpu_ms - (first?.cpu_ms ?? 0)) / elapsed_ms) * 100,
      wakeups_per_s: ((sample.wakeups - (first?.wakeups ?? 0)) / elapsed_ms) * 1_000,
    }
  })
  const sum = (of: 'pss_mb' | 'cpu_percent' | 'wakeups_per_s') => rows.reduce((total, row) => total + row[of], 0)
  const line = (name: string, pss: string, cpu: string, wakeups: string) =>
    console.log(`  ${name.padEnd(52)} ${pss.padStart(8)} ${cpu.padStart(8)} ${wakeups.padStart(12)}`)
  console.log(`  over ${(elapsed_ms / 1_000).toFixed(0)} s:`)
  line('process', 'PSS MB', 'CPU %', 'wake-ups/s')
  for (const { name, pss_mb, cpu_percent, wakeups_per_s } of rows.sort((a, b) => b.pss_mb - a.pss_mb)) {
    line(name.slice(0, 52), pss_mb.toFixed(1), cpu_percent.toFixed(2), wakeups_per_s.toFixed(1))
  }
  const ended = [...before.keys()].filter((pid) => !after.has(pid)).length
  if (ended > 0) console.log(`  ${ended} processes ended meanwhile and are not counted`)
  line('all', sum('pss_mb').toFixed(1), sum('cpu_percent').toFixed(2), sum('wakeups_per_s').toFixed(1))
  verdict('memory, MB', sum('pss_mb'), MEMORY_MB_GOAL, 'at most')
  verdict('processor, % of a core', sum('cpu_percent'), CPU_PERCENT_GOAL, 'at most')
}
