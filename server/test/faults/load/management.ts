// The management of a game. One developer uploads sites and builds, makes versions and deploys them. One manager issues and
// revokes tokens, and claims and releases domains.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ApiError,
  addNamespaceDomain,
  completeUpload,
  createCloudToken,
  createGameBuild,
  createGameCdnSite,
  createGameVersion,
  removeNamespaceDomain,
  revokeGameCloudToken,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { tarGz } from '../../support/builds.ts'
import { GAME_SERVER } from '../game-server.ts'
import type { LoadContext, Step } from './load.ts'
import { repeat } from './repeat.ts'

const SITE_FILES = 3
const SITE_FILE_BYTES_MAX = 20_000
const BUILD_CHANCE = 0.25
/** An upload is completed though one of its files is missing. */
const INCOMPLETE_CHANCE = 0.1
/** Deploys replace lobbies, which costs a start of a process each. */
const DEVELOPER_PAUSE_MS_MAX = 1_000
const REVOKE_CHANCE = 0.7
const RELEASE_CHANCE = 0.8
/** A claim is checked from time to time, and a namespace has a limit of claims. */
const CLAIMS_MAX = 8
const MANAGER_PAUSE_MS_MAX = 100

type File = { path: string; bytes: Buffer }
type Prepared = { upload_id: string; build_id?: string; site_id?: string; urls: string[] }

export function developer({ platform, history, random }: LoadContext): Step {
  const { game } = platform
  const client = platform.as(game.cloud_token)
  const params = { game_id: game.game_id }

  const prepareSite = (files: readonly File[]) =>
    repeat(random, async (signal): Promise<Prepared> => {
      const body = {
        display_name: 'Site',
        files: files.map(({ path, bytes }) => ({ path, content_length: bytes.length })),
      }
      const { presigned_requests, ...site } = await client.call(createGameCdnSite, { params, body, signal })
      return { ...site, urls: presigned_requests.map(({ url }) => url) }
    })
  const prepareBuild = ({ path, bytes }: File) =>
    repeat(random, async (signal): Promise<Prepared> => {
      const image_file = { path, content_length: bytes.length }
      const body = { display_name: 'Build', image_tag: `server:${randomUUID()}`, image_file }
      const { image_presigned_request, ...build } = await client.call(createGameBuild, { params, body, signal })
      return { ...build, urls: [image_presigned_request!.url] }
    })

  /** Whether all that the upload needs has been acknowledged. */
  const send = async ({ upload_id, urls }: Prepared, files: readonly File[]): Promise<boolean> => {
    const skipped = random.chance(INCOMPLETE_CHANCE) ? 1 : 0
    const listed = files.map(({ path, bytes }) => ({ path, sha256: sha256Of(bytes) }))
    for (const [number, { bytes }] of files.slice(skipped).entries()) {
      const url = urls[number + skipped]!
      const attempts = await repeat(random, (signal) => putFile(platform.edge_url, url, bytes, signal))
      history.record('object', { upload_id, ...listed[number + skipped]! }, attempts)
      if (attempts.outcome.status !== 'acknowledged') return false
    }
    const completed = await repeat(random, (signal) => client.call(completeUpload, { params: { upload_id }, signal }))
    history.record('upload', { upload_id, files: listed }, completed)
    return completed.outcome.status === 'acknowledged'
  }

  const deploy = async (wish: { site_id?: string; build_id?: string }): Promise<void> => {
    const body = { display_name: randomUUID(), config: platform.versionConfig('staging', wish) }
    const made = await repeat(random, (signal) => client.call(createGameVersion, { params, body, signal }))
    history.record('version', params, made)
    if (made.outcome.status !== 'acknowledged') return
    const { version_id } = made.outcome.result
    const namespace_id = game.namespaces.staging
    const deployed = await repeat(random, (signal) =>
      client.call(updateGameNamespaceVersion, { params: { ...params, namespace_id }, body: { version_id }, signal }),
    )
    history.record('deploy', { namespace_id, version_id }, deployed)
  }

  return async () => {
    const is_build = random.chance(BUILD_CHANCE)
    const files = is_build ? [await buildFile()] : siteFiles(random.int(SITE_FILE_BYTES_MAX) + 1)
    const prepared = await (is_build ? prepareBuild(files[0]!) : prepareSite(files))
    if (prepared.outcome.status !== 'acknowledged') return
    const { site_id, build_id } = prepared.outcome.result
    if (!(await send(prepared.outcome.result, files))) return
    await deploy(build_id === undefined ? { site_id: site_id! } : { build_id })
    await sleep(random.int(DEVELOPER_PAUSE_MS_MAX))
  }
}

export function manager({ platform, history, random }: LoadContext): Step {
  const { game_id, cloud_token, namespaces } = platform.game
  const client = platform.as(cloud_token)
  const namespace_id = namespaces.staging
  const claims: string[] = []

  const changeToken = async (): Promise<void> => {
    const created = await repeat(random, async (signal) => {
      const { token } = await client.call(createCloudToken, { params: { game_id }, signal })
      return { token, token_id: platform.keys.verify(token, Date.now()).token_id }
    })
    history.record('token', { game_id }, created)
    if (created.outcome.status !== 'acknowledged' || !random.chance(REVOKE_CHANCE)) return
    const { token, token_id } = created.outcome.result
    const params = { game_id, token_id }
    const revoked = await repeat(random, (signal) => client.call(revokeGameCloudToken, { params, signal }))
    history.record('revocation', { token, token_id }, revoked)
  }

  const changeDomain = async (): Promise<void> => {
    const params = { game_id, namespace_id }
    const is_wanted = claims.length < CLAIMS_MAX && !(claims.length > 0 && random.chance(RELEASE_CHANCE))
    const domain = is_wanted ? `${randomUUID()}.example.com` : claims.shift()!
    const attempts = await repeat<unknown>(random, (signal) =>
      is_wanted
        ? client.call(addNamespaceDomain, { params, body: { domain }, signal })
        : client.call(removeNamespaceDomain, { params: { ...params, domain }, signal }),
    )
    history.record('domain', { namespace_id, domain, is_wanted }, attempts)
    if (is_wanted && attempts.outcome.status === 'acknowledged') claims.push(domain)
  }

  return async () => {
    await (random.chance(0.5) ? changeToken() : changeDomain())
    await sleep(random.int(MANAGER_PAUSE_MS_MAX))
  }
}

/** Uploads through the edge, whatever host the presigned address names. Throws as a client's call does. */
async function putFile(edge_url: string, url: string, bytes: Buffer, signal: AbortSignal): Promise<void> {
  const { pathname, search } = new URL(url)
  const response = await fetch(`${edge_url}${pathname}${search}`, {
    method: 'PUT',
    body: new Uint8Array(bytes),
    signal,
  })
  const text = await response.text()
  if (response.ok) return
  throw new ApiError(response.status < 500 ? 'UPLOAD_INVALID' : 'API_NOT_AVAILABLE', {}, { message: text })
}

function siteFiles(bytes: number): File[] {
  return Array.from({ length: SITE_FILES }, (_, number) => ({ path: `file-${number}.bin`, bytes: randomBytes(bytes) }))
}

async function buildFile(): Promise<File> {
  return { path: 'server.tar.gz', bytes: await tarGz({ 'server.mjs': GAME_SERVER, 'build.txt': randomUUID() }) }
}

function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
