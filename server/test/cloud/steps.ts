// Steps that many tests of the management side take, through the typed client and real PUTs.
import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import {
  ApiError,
  type BodyOf,
  completeUpload,
  createCloudToken,
  createGame,
  createGameBuild,
  createGameCdnSite,
  createGroup,
  type ErrorCode,
  type ErrorDetail,
  getGameById,
  type PresignedRequest,
} from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import tar from 'tar-stream'
import type { Static } from 'typebox'
import type { Platform } from '../support/platform.ts'

export type Presigned = Static<typeof PresignedRequest>

export const UNKNOWN_ID = '0190163d-8694-739b-aea5-966c26f8ad91'

export type TestGame = {
  group_id: string
  game_id: string
  /** On the first, empty version. */
  prod_id: string
  staging_id: string
  version_id: string
  cloud_token: string
  /** With the game's cloud token. */
  cloud: Client
}

export async function newGame(platform: Platform): Promise<TestGame> {
  const { client } = platform
  const { group_id } = await client.call(createGroup, { body: { display_name: 'Developers' } })
  const { game_id } = await client.call(createGame, { body: { display_name: 'Game', developer_group_id: group_id } })
  const { game } = await client.call(getGameById, { params: { game_id } })
  const { token } = await client.call(createCloudToken, { params: { game_id } })
  const idOf = (name_id: string): string => game.namespaces.find((item) => item.name_id === name_id)!.namespace_id
  return {
    group_id,
    game_id,
    prod_id: idOf('prod'),
    staging_id: idOf('staging'),
    version_id: game.versions[0]!.version_id,
    cloud_token: token,
    cloud: createClient({ url: platform.api_url, token }),
  }
}

/** Asserts that a call is refused with the code, and answers the refusal. */
export async function refused(code: ErrorCode, call: Promise<unknown>): Promise<ApiError> {
  try {
    await call
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    assert.equal(error.code, code, error.message)
    return error
  }
  assert.fail(`The call should have been refused with ${code}.`)
}

export function detailsOf(error: ApiError): Pick<ErrorDetail, 'path' | 'reason'>[] {
  return withoutMessages(error.metadata.errors as ErrorDetail[])
}

export function withoutMessages(errors: readonly ErrorDetail[]): Pick<ErrorDetail, 'path' | 'reason'>[] {
  return errors.map(({ path, reason }) => ({ path, reason }))
}

/** A presigned address names the main domain and port; here the api role is asked itself, as the edge would ask it. */
export function apiAddress(platform: Platform, presigned: Presigned): string {
  const { pathname, search } = new URL(presigned.url)
  return `${platform.api_url}${pathname}${search}`
}

export function putFile(platform: Platform, presigned: Presigned, bytes: Uint8Array | string): Promise<Response> {
  return fetch(apiAddress(platform, presigned), { method: 'PUT', body: Buffer.from(bytes) })
}

export async function arrives(platform: Platform, presigned: Presigned, bytes: Uint8Array | string): Promise<void> {
  const response = await putFile(platform, presigned, bytes)
  assert.equal(response.status, 200, await response.text())
}

let tags_used = 0

export function buildBody(bytes: Uint8Array, path = 'server.tar.gz'): BodyOf<typeof createGameBuild> {
  tags_used++
  return {
    display_name: 'Build',
    image_tag: `game:${tags_used}`,
    image_file: { path, content_length: bytes.length },
  }
}

export async function newBuild(platform: Platform, game_id: string): Promise<string> {
  const bytes = await tarGz({ 'server.js': 'console.log(1)' })
  const build = await platform.client.call(createGameBuild, { params: { game_id }, body: buildBody(bytes) })
  await arrives(platform, build.image_presigned_request!, bytes)
  await platform.client.call(completeUpload, { params: { upload_id: build.upload_id } })
  return build.build_id
}

export async function newSite(platform: Platform, game_id: string): Promise<string> {
  const body = { display_name: 'Site', files: [{ path: 'index.html', content_length: 2 }] }
  const site = await platform.client.call(createGameCdnSite, { params: { game_id }, body })
  await arrives(platform, site.presigned_requests[0]!, 'hi')
  await platform.client.call(completeUpload, { params: { upload_id: site.upload_id } })
  return site.site_id
}

export async function tarGz(files: Record<string, string>): Promise<Buffer> {
  const pack = tar.pack()
  for (const [name, text] of Object.entries(files)) pack.entry({ name }, text)
  pack.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of pack) chunks.push(chunk as Buffer)
  return gzipSync(Buffer.concat(chunks))
}
