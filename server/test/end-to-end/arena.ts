// The platform as `npm start` brings it up, with the arena on it: what the end-to-end tests play.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { listLobbies, type ResponseOf } from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { DEPLOY_EXAMPLE } from '../run/built-programs.ts'
import { freeSettings, type Started, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { placeCluster } from '../support/made-cluster.ts'

export type Arena = {
  folder: string
  settings: Record<string, string>
  play_url: string
  /** As the game's page calls: its Origin stands for the namespace. */
  player: Client
  lobbies: () => Promise<ResponseOf<typeof listLobbies>['lobbies']>
  /** Deploys the game once more, as another version. */
  deploy: (options: string[]) => Promise<void>
  started: () => Started
  /** A further life of the same platform, after the one before has ended. */
  startAgain: () => Promise<void>
}

export async function startArena(
  t: TestContext,
  options: { deploy: string[]; deploy_env?: Record<string, string>; env?: Record<string, string> },
): Promise<Arena> {
  const folder = temporaryFolder(t)
  // A test asks again and again.
  const settings = { ...(await freeSettings(folder)), MUSTER_RATE_LIMIT_MATCHMAKER: '0', ...options.env }
  if (options.env?.DATABASE_URL === undefined) await placeCluster(folder)
  let started = startMuster(settings)
  await started.ready
  const url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const play_url = await deploy(url, folder, options.deploy, options.deploy_env)
  const player = createClient({ url, headers: { origin: new URL(play_url).origin } })
  return {
    folder,
    settings,
    play_url,
    player,
    deploy: async (deploy_options) => void (await deploy(url, folder, deploy_options, options.deploy_env)),
    lobbies: async () => (await player.call(listLobbies, {})).lobbies,
    started: () => started,
    async startAgain() {
      await started.ended
      started = startMuster(settings)
      await started.ready
    },
  }
}

/** As a developer deploys: the script of the example, with the operator's token. */
async function deploy(
  url: string,
  folder: string,
  options: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const token = readFileSync(join(folder, 'admin-token'), 'utf8').trim()
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [DEPLOY_EXAMPLE, ...options], {
    env: { PATH, HOME, NODE_COMPILE_CACHE, MUSTER_URL: url, MUSTER_TOKEN: token, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`the arena could not be deployed:\n${output}`)
  const last = output.trim().split('\n').at(-1) ?? '{}'
  return (JSON.parse(last) as { play_url: string }).play_url
}
