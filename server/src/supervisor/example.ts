// The example game. The first start deploys it by its own script, an ordinary client of the API, so that the printed
// address works at once. No other part of the platform knows of it.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { VersionConfig } from '@musterhost/contract'
import { publicUrl } from '../config/addresses.ts'
import type { Config } from '../config/config.ts'
import { ROLES } from '../config/roles.ts'
import type { Database } from '../context.ts'
import { splitLines } from './log-file.ts'

const SCRIPT = fileURLToPath(new URL('../../../examples/arena/deploy.ts', import.meta.url))
const GAME = 'arena'
/** Games read: the example, and one more, which shows that another game exists. */
const GAMES_READ_MAX = 2
/** Time limit of the script. */
const DEPLOY_MS_MAX = 120_000
/** Last lines of the script's standard error that are kept. */
const LAST_LINES_MAX = 5

/**
 * Whether to deploy the example, and the address of one that was deployed earlier. It is deployed in development mode only,
 * with all roles and the examples present, and while no other game exists. An example without a site, from an interrupted
 * start, is deployed again.
 */
export async function findExample(
  config: Config,
  db: Database,
): Promise<{ is_wanted: boolean; play_url: string | null }> {
  if (config.mode !== 'development') return { is_wanted: false, play_url: null }
  const games = await db
    .selectFrom('games')
    .innerJoin('namespaces', 'namespaces.game_id', 'games.game_id')
    .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
    .select(['games.name_id', 'versions.config'])
    .where('namespaces.name_id', '=', 'prod')
    .orderBy((order) => order('games.name_id', '=', GAME), 'desc')
    .limit(GAMES_READ_MAX)
    .execute()
  const example = games.find((game) => game.name_id === GAME)
  if ((example?.config as VersionConfig | undefined)?.cdn?.site_id) {
    return { is_wanted: false, play_url: `${publicUrl(config, `${GAME}.${config.domains.cdn}`)}/` }
  }
  const is_alone = games.every((game) => game.name_id === GAME)
  return { is_wanted: is_alone && config.roles.length === ROLES.length && existsSync(SCRIPT), play_url: null }
}

/**
 * Runs the script, and resolves to the `play_url` of its last JSON line. Rejects with the last lines of its standard error
 * when it fails, takes too long, or `signal` aborts.
 */
export async function deployExample(env: Record<string, string>, signal: AbortSignal): Promise<string> {
  const child = spawn(process.execPath, [SCRIPT], { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const ending = AbortSignal.any([signal, AbortSignal.timeout(DEPLOY_MS_MAX)])
  const kill = (): void => void child.kill('SIGKILL')
  ending.addEventListener('abort', kill, { once: true })
  let play_url: string | null = null
  const last_lines: string[] = []
  splitLines(child.stdout, (line) => {
    play_url = playUrl(line) ?? play_url
  })
  splitLines(child.stderr, (line) => {
    last_lines.push(line)
    if (last_lines.length > LAST_LINES_MAX) last_lines.shift()
  })
  const end = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, by) => resolve(code === 0 ? '' : `it ended with ${by ?? `code ${code}`}`))
  })
  ending.removeEventListener('abort', kill)
  if (end === '' && play_url !== null) return play_url
  throw new Error([end || 'it printed no play_url', ...last_lines].join(' '))
}

/** The http address in `{"play_url": "..."}`; null for every other line. */
function playUrl(line: string): string | null {
  if (!line.startsWith('{')) return null
  try {
    const { play_url } = JSON.parse(line) as { play_url?: unknown }
    return typeof play_url === 'string' && /^https?:$/.test(new URL(play_url).protocol) ? play_url : null
  } catch {
    // Not a JSON line.
    return null
  }
}
