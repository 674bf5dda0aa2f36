// Two matchmakers on one database, with every player asking both. The writing one is suspended (SIGSTOP) until the other has
// taken over. Then it continues (SIGCONT) with its old state, and the fence must refuse its writes.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listLobbies } from '@muster/contract'
import { createClient } from '@muster/contract/client'
import { freePorts } from '../free-ports.ts'
import { freeSettings, roleOf } from '../supervisor/started.ts'
import { until } from '../until.ts'
import { outcomeOf } from './history.ts'
import { playerLoad } from './load/load.ts'
import type { FaultyPlatform } from './platform.ts'
import type { Round } from './report.ts'
import { acknowledge, type Harm, playRounds, type RunOptions, type RunResult, randomWhile, withRun } from './run.ts'

const PROGRAM = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

const BEFORE_ACKNOWLEDGED_MAX = 60
/** While the other one writes. */
const PAUSED_ACKNOWLEDGED = 20
const PAUSED_MS_MAX = 2_000
const ASK_MS_MAX = 2_000

type Matchmaker = { name: string; url: string; pid: () => number }

export async function runTwoMatchmakers(
  options: RunOptions,
  tell: (number: number, round: Round) => void,
): Promise<RunResult> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-faults-'))
  const [first_port, second_port] = await freePorts(2)
  const urls = [first_port, second_port].map((port) => `http://127.0.0.1:${port}`) as [string, string]
  // The lobbies call both matchmakers at ports of this machine, which a network of their own would not reach.
  const env = { MUSTER_MATCHMAKER_PORT: String(first_port), MUSTER_LOBBY_NETWORK: 'machine' }
  let second: ChildProcess | null = null
  try {
    return await withRun(
      { folder, env, lobby_env: { MATCHMAKERS: urls.join(',') }, find_urls: urls, seed: options.seed },
      async (run) => {
        const { platform, history, random } = run
        second = await startSecond(platform, second_port!)
        const second_pid = second.pid!
        const matchmakers: Matchmaker[] = [
          { name: 'the first matchmaker', url: urls[0], pid: () => roleOf(folder, 'matchmaker')! },
          { name: 'the second matchmaker', url: urls[1], pid: () => second_pid },
        ]
        const callers = urls.map((url) => createClient({ url, token: platform.game.cloud_token }))
        const load = playerLoad({ platform, history, random: random.fork('load') }, callers)
        const harm = async (): Promise<Harm> => {
          await acknowledge(history, random.int(BEFORE_ACKNOWLEDGED_MAX))
          const writer = await writerOf(platform, matchmakers)
          const other = matchmakers.find((matchmaker) => matchmaker !== writer)!
          const pid = writer.pid()
          process.kill(pid, 'SIGSTOP')
          await until(`${other.name} to take over`, () => isWriter(platform, other))
          await acknowledge(history, PAUSED_ACKNOWLEDGED)
          await randomWhile(random, PAUSED_MS_MAX)
          process.kill(pid, 'SIGCONT')
          const begin_ms = performance.now()
          await until(`${writer.name} to stand by`, async () => !(await isWriter(platform, writer)))
          const what = `${writer.name} is stopped and goes on`
          return { what, whole_after_ms: performance.now() - begin_ms, may_end: [] }
        }
        return playRounds(run, load, options, harm, tell)
      },
    )
  } finally {
    await end(second)
    await rm(folder, { recursive: true, force: true })
  }
}

/** Like a second machine: its own data folder, with the same keys and the same database. */
async function startSecond(platform: FaultyPlatform, port: number): Promise<ChildProcess> {
  const folder = join(platform.folder, 'second')
  await mkdir(folder, { mode: 0o700 })
  await cp(join(platform.folder, 'keys'), join(folder, 'keys'), { recursive: true })
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, [PROGRAM], {
    env: {
      PATH,
      HOME,
      ...platform.settings,
      ...(await freeSettings(folder)),
      MUSTER_MATCHMAKER_PORT: String(port),
      MUSTER_ROLES: 'matchmaker',
      DATABASE_URL: platform.database_url,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const url = `http://127.0.0.1:${port}`
  await until('the second matchmaker to answer', () =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  )
  return child
}

/** Whether it serves a read, which only the writing matchmaker does. */
async function isWriter({ game }: FaultyPlatform, { url }: Matchmaker): Promise<boolean> {
  const client = createClient({ url, token: game.public_tokens.prod })
  const outcome = await outcomeOf(client.call(listLobbies, { signal: AbortSignal.timeout(ASK_MS_MAX) }))
  return outcome.status === 'acknowledged'
}

function writerOf(platform: FaultyPlatform, matchmakers: readonly Matchmaker[]): Promise<Matchmaker> {
  return until('one of the matchmakers to write', async () => {
    for (const matchmaker of matchmakers) if (await isWriter(platform, matchmaker)) return matchmaker
    return null
  })
}

async function end(child: ChildProcess | null): Promise<void> {
  if (child === null || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
