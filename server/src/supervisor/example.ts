// The example game: deployed on the first start by its own script, a client of the API like any other, so that the
// printed address plays at once. Nothing else of the platform knows that it exists.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { VersionConfig } from '@muster/contract'
import { publicUrl } from '../config/addresses.ts'
import type { Config } from '../config/config.ts'
import { ROLES } from '../config/roles.ts'
import type { Database } from '../context.ts'
import { splitLines } from './log-file.ts'

const SCRIPT = fileURLToPath(new URL('../../../examples/arena/deploy.ts', import.meta.url))
const GAME = 'arena'
/** The example, if it is there, and one that tells that somebody has made a game of his own. */
const GAMES_LOOKED_AT_MAX = 2
const DEPLOY_MS_MAX = 120_000
const LAST_WORDS_MAX = 5

/**
 * Whether the example is to be deployed, and where an earlier start's is played. Only on a laptop, with all roles and the
 * examples there; deployed while there is no game but the example, and that without a site, as a start that was broken
 * off leaves it.
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
    .limit(GAMES_LOOKED_AT_MAX)
    .execute()
  const example = games.find((game) => game.name_id === GAME)
  if ((example?.config as VersionConfig | undefined)?.cdn?.site_id) {
    return { is_wanted: false, play_url: `${publicUrl(config, `${GAME}.${config.domains.cdn}`)}/` }
  }
  const isAlone = games.every((game) => game.name_id === GAME)
  return { is_wanted: isAlone && config.roles.length === ROLES.length && existsSync(SCRIPT), play_url: null }
}

/**
 * Runs the script; resolves to the address that the last of its JSON lines names as `play_url`. Rejects with what it said
 * last when it fails, takes too long or is given up by `signal`.
 */
export async function deployExample(env: Record<string, string>, signal: AbortSignal): Promise<string> {
  const child = spawn(process.execPath, [SCRIPT], { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const giveUp = AbortSignal.any([signal, AbortSignal.timeout(DEPLOY_MS_MAX)])
  const kill = (): void => void child.kill('SIGKILL')
  giveUp.addEventListener('abort', kill, { once: true })
  let play_url: string | null = null
  const lastWords: string[] = []
  splitLines(child.stdout, (line) => {
    play_url = playUrl(line) ?? play_url
  })
  splitLines(child.stderr, (line) => {
    lastWords.push(line)
    if (lastWords.length > LAST_WORDS_MAX) lastWords.shift()
  })
  const end = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, by) => resolve(code === 0 ? '' : `it ended with ${by ?? `code ${code}`}`))
  })
  giveUp.removeEventListener('abort', kill)
  if (end === '' && play_url !== null) return play_url
  throw new Error([end || 'it named no play_url', ...lastWords].join(' '))
}

/** The http address in `{"play_url": "..."}`; null for every other line. */
function playUrl(line: string): string | null {
  if (!line.startsWith('{')) return null
  try {
    const { play_url } = JSON.parse(line) as { play_url?: unknown }
    return typeof play_url === 'string' && /^https?:$/.test(new URL(play_url).protocol) ? play_url : null
  } catch {
    // Not a line for us.
    return null
  }
}
