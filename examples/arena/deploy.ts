// Puts the game on a platform: group and game if they are missing, a build, a site, a version that names both, and the
// version on namespace prod. Everything goes through the public API.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import {
  CAPTCHA_PROVIDERS,
  type CaptchaConfig,
  type CaptchaProvider,
  completeUpload,
  createGame,
  createGameBuild,
  createGameCdnSite,
  createGameVersion,
  createGroup,
  getBootstrap,
  getGameById,
  getGames,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { archive, type BuiltFile, buildServer, buildSite, contentTypeOf } from './build.ts'

const USAGE = `MUSTER_URL=http://localhost:8000 MUSTER_TOKEN=... node ${basename(import.meta.filename)} [options]

  --name NAME                The game's name id, and the first part of its host (arena).
  --image FILE               Run the server from this container image, an output of docker save.
  --max-players NUMBER       Seats of a lobby (8).
  --max-spectators NUMBER    Seats of a lobby for people who only watch (8).
  --players-to-begin NUMBER  A game begins with so many players together.
  --idle-grace-ms NUMBER     An empty lobby is stopped after this.
  --ready-deadline-ms NUMBER A lobby must be ready within this.
  --player-deadline-ms NUMBER  A player must connect within this.
  --captcha PROVIDER         Players are asked for a captcha of turnstile or hcaptcha. Its keys are --captcha-site-key and,
                             in the environment, CAPTCHA_SECRET_KEY.
  --captcha-requests NUMBER  Requests that a client may make after one (10).
  --captcha-script URL       Where the page gets the widget, if not from the provider.`
const VERIFICATION_TTL_MS = 240_000
const UPLOADS_AT_ONCE_MAX = 4

type Captcha = {
  provider: CaptchaProvider
  site_key: string
  secret_key: string
  requests_before_reverify: number
  script_url?: string
}

type DeployOptions = {
  name: string
  image?: string
  captcha?: Captcha
  max_players: number
  max_spectators: number
  players_to_begin?: number
  idle_grace_ms?: number
  ready_deadline_ms?: number
  player_deadline_ms?: number
}

/** One JSON object a line, for people and programs; the last one has `play_url`. */
function tell(line: Record<string, unknown>): void {
  console.log(JSON.stringify(line))
}

async function deploy(client: Client, url: URL, options: DeployOptions): Promise<void> {
  const game_id = await requireGame(client, options.name)
  const { game } = await client.call(getGameById, { params: { game_id } })
  const namespace = game.namespaces.find((candidate) => candidate.name_id === 'prod')
  if (namespace === undefined) throw new Error(`The game ${options.name} has no namespace prod.`)
  tell({ game_id, namespace_id: namespace.namespace_id })

  const build_id = await uploadServer(client, game_id, options)
  const site_id = await uploadSite(client, game_id, options.captcha)
  const config = versionConfig(options, url, { build_id, site_id })
  const display_name = `${new Date().toISOString()} ${build_id.slice(-6)}`
  const { version_id } = await client.call(createGameVersion, { params: { game_id }, body: { display_name, config } })
  const { namespace_id } = namespace
  await client.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } })
  tell({ version_id, deployed_to: 'prod' })

  const { domains } = await client.call(getBootstrap, {})
  const port = url.port === '' ? '' : `:${url.port}`
  tell({ play_url: `${url.protocol}//${options.name}.${domains?.cdn ?? `cdn.${url.hostname}`}${port}/` })
}

/** The game of this name; made, in a group of its own, when there is none. */
async function requireGame(client: Client, name: string): Promise<string> {
  const { games, groups } = await client.call(getGames, {})
  const known = games.find((game) => game.name_id === name)
  if (known !== undefined) return known.game_id
  const group = groups.find((candidate) => candidate.display_name === 'Examples')
  const group_id = group?.group_id ?? (await client.call(createGroup, { body: { display_name: 'Examples' } })).group_id
  const body = { name_id: name, display_name: 'Arena', developer_group_id: group_id }
  return (await client.call(createGame, { body })).game_id
}

async function uploadServer(client: Client, game_id: string, { name, image }: DeployOptions): Promise<string> {
  const content = image === undefined ? archive(await buildServer()) : await readFile(image)
  const content_type = 'application/gzip'
  // Unique in the game, and it says what is inside.
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 12)
  const { build_id, upload_id, image_presigned_request } = await client.call(createGameBuild, {
    params: { game_id },
    body: {
      display_name: `Arena server ${hash}`,
      image_tag: `${name}:${hash}-${Date.now()}`,
      image_file: {
        path: image === undefined ? 'server.tar.gz' : basename(image),
        content_type,
        content_length: content.length,
      },
      kind: image === undefined ? 'archive' : 'docker_image',
    },
  })
  if (image_presigned_request === undefined) throw new Error('A build in one file has one address.')
  await put(image_presigned_request.url, content, content_type)
  await client.call(completeUpload, { params: { upload_id } })
  tell({ build_id, bytes: content.length })
  return build_id
}

async function uploadSite(client: Client, game_id: string, captcha?: Captcha): Promise<string> {
  const built = withScript(await buildSite(), captcha)
  const files = built.map(({ path, content }) => ({
    path,
    content_type: contentTypeOf(path),
    content_length: content.length,
  }))
  const { site_id, upload_id, presigned_requests } = await client.call(createGameCdnSite, {
    params: { game_id },
    body: { display_name: 'Arena site', files },
  })
  const waiting = presigned_requests.map(({ path, url }) => ({ url, file: requireFile(built, path) }))
  const work = Array.from({ length: UPLOADS_AT_ONCE_MAX }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await put(next.url, next.file.content, contentTypeOf(next.file.path))
    }
  })
  await Promise.all(work)
  await client.call(completeUpload, { params: { upload_id } })
  tell({ site_id, files: files.length })
  return site_id
}

/** The page's head says where the widget's script is. */
function withScript(files: BuiltFile[], captcha: Captcha | undefined): BuiltFile[] {
  const { provider, script_url } = captcha ?? {}
  if (script_url === undefined) return files
  const { href } = new URL(script_url)
  return files.map((file) => {
    if (file.path !== 'index.html') return file
    const address = RegExp(`(?<=name="${provider}" content=")[^"]*`)
    const page = file.content.toString().replace(address, () => href)
    return { ...file, content: Buffer.from(page) }
  })
}

function requireFile(files: BuiltFile[], path: string): BuiltFile {
  const file = files.find((candidate) => candidate.path === path)
  if (file === undefined) throw new Error(`The platform asks for ${path}, which was not offered.`)
  return file
}

async function put(url: string, content: Buffer, content_type: string): Promise<void> {
  const headers = { 'content-type': content_type }
  const response = await fetch(url, { method: 'PUT', headers, body: new Uint8Array(content) })
  const text = await response.text()
  if (!response.ok) throw new Error(`An upload was refused with status ${response.status}: ${text}`)
}

function versionConfig(
  options: DeployOptions,
  url: URL,
  { build_id, site_id }: { build_id: string; site_id: string },
): VersionConfig {
  const { name: _name, image, captcha, players_to_begin, ...limits } = options
  const matching = players_to_begin && { size: { min: players_to_begin, max: limits.max_players } }
  return {
    cdn: { site_id },
    matchmaker: {
      game_modes: { default: { ...limits, ...(matching && { matching }) } },
      ...(captcha && { captcha: captchaConfig(captcha) }),
      // Half a core is plenty for eight players.
      tier: 'basic-1d2',
      docker: {
        image_id: build_id,
        // An image names its program itself.
        ...(image === undefined && { args: ['node', 'server/main.js'] }),
        // A browser opens no plain WebSocket from a page over HTTPS.
        ports: { game: { protocol: url.protocol === 'https:' ? 'https' : 'http' } },
      },
    },
  }
}

function captchaConfig({ provider, site_key, secret_key, requests_before_reverify }: Captcha): CaptchaConfig {
  const keys = { site_key, secret_key }
  return { requests_before_reverify, verification_ttl: VERIFICATION_TTL_MS, [provider]: keys }
}

function readOptions(): DeployOptions {
  const { values } = parseArgs({
    options: {
      name: { type: 'string', default: 'arena' },
      image: { type: 'string' },
      'max-players': { type: 'string', default: '8' },
      'max-spectators': { type: 'string', default: '8' },
      'players-to-begin': { type: 'string' },
      'idle-grace-ms': { type: 'string' },
      'ready-deadline-ms': { type: 'string' },
      'player-deadline-ms': { type: 'string' },
      captcha: { type: 'string' },
      'captcha-site-key': { type: 'string', default: '' },
      'captcha-requests': { type: 'string', default: '10' },
      'captcha-script': { type: 'string' },
    },
  })
  const options: DeployOptions = {
    name: values.name,
    max_players: Number(values['max-players']),
    max_spectators: Number(values['max-spectators']),
  }
  if (values.image !== undefined) options.image = values.image
  if (values['players-to-begin'] !== undefined) options.players_to_begin = Number(values['players-to-begin'])
  if (values['idle-grace-ms'] !== undefined) options.idle_grace_ms = Number(values['idle-grace-ms'])
  if (values['ready-deadline-ms'] !== undefined) options.ready_deadline_ms = Number(values['ready-deadline-ms'])
  if (values['player-deadline-ms'] !== undefined) options.player_deadline_ms = Number(values['player-deadline-ms'])
  const provider = CAPTCHA_PROVIDERS.find((name) => name === values.captcha)
  if (provider !== undefined) {
    options.captcha = {
      provider,
      site_key: values['captcha-site-key'],
      secret_key: process.env.CAPTCHA_SECRET_KEY ?? '',
      requests_before_reverify: Number(values['captcha-requests']),
    }
    if (values['captcha-script'] !== undefined) options.captcha.script_url = values['captcha-script']
  } else if (values.captcha !== undefined) throw new Error(`There is no captcha provider ${values.captcha}.`)
  return options
}

const { MUSTER_URL: url, MUSTER_TOKEN: token } = process.env
if (url === undefined || token === undefined) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  await deploy(createClient({ url: url.replace(/\/$/, ''), token }), new URL(url), readOptions())
}
