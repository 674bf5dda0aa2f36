// Projects for tests of deploys: a folder with muster.yaml, a server and a page, on a platform with a game of that name.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { createGame, createGroup } from '@musterhost/contract'
import { LEAST_SERVER } from '../../server/test/support/builds.ts'
import type { Platform } from '../../server/test/support/platform.ts'
import { createMuster, type Ended, type Muster } from './program.ts'

export type DeployedProject = {
  folder: string
  game_id: string
  muster: Muster
  write(path: string, content: string | Uint8Array): void
  run(args: readonly string[], env?: Record<string, string>): Promise<Ended>
  /** Runs `deploy --json` with these options, expects exit code 0, and returns the result. */
  deploy(...options: string[]): Promise<Record<string, unknown>>
}

export type ProjectFiles = {
  game?: string
  matchmaker?: string
  server?: Record<string, string>
  /** Default: the edge of the platform. */
  url?: string
  site?: Record<string, string>
  /** Commands run as createMuster() describes. */
  in_threads?: boolean
}

export const MATCHMAKER = `matchmaker:
  game_modes: { default: { max_players: 4 } }
  docker: { args: [node, server.mjs], ports: { game: { protocol: http } } }
`
/** Games of one test file have different names. */
let games = 0

export async function createProject(
  t: TestContext,
  platform: Platform,
  files: ProjectFiles = {},
): Promise<DeployedProject> {
  const { client } = platform
  const name_id = files.game ?? `game-${++games}`
  const { group_id } = await client.call(createGroup, { body: { display_name: 'Developers' } })
  const body = { display_name: 'Game', name_id, developer_group_id: group_id }
  const { game_id } = await client.call(createGame, { body })
  const folder = mkdtempSync(join(tmpdir(), 'muster-project-'))
  // As root, PostgreSQL runs as another user, who must reach its folder.
  chmodSync(folder, 0o755)
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const write = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  const has_site = files.site !== undefined
  write(
    'muster.yaml',
    `game: ${name_id}\nserver: { folder: server }\n${has_site ? 'site: { folder: site }\n' : ''}${files.matchmaker ?? MATCHMAKER}`,
  )
  for (const [path, text] of Object.entries(files.server ?? { 'server.mjs': LEAST_SERVER }))
    write(`server/${path}`, text)
  for (const [path, text] of Object.entries(files.site ?? {})) write(`site/${path}`, text)
  const env = { MUSTER_URL: files.url ?? platform.edge_url, MUSTER_TOKEN: platform.token }
  const muster = createMuster(t, env, { in_threads: files.in_threads ?? false })
  const run: DeployedProject['run'] = (args, env = {}) => muster.run(args, { cwd: folder, env })
  return {
    folder,
    game_id,
    muster,
    write,
    run,
    async deploy(...options) {
      const { code, stdout, stderr } = await run(['deploy', '--json', ...options])
      if (code !== 0) throw new Error(`muster deploy ended with ${code}: ${stderr}`)
      return JSON.parse(stdout) as Record<string, unknown>
    },
  }
}
