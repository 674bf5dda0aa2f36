// Steps of the tests with stored files in a bucket.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import {
  completeUpload,
  createGameCdnSite,
  createGameVersion,
  getGameById,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import type { Presigned } from '../cloud/steps.ts'
import { get } from '../edge/get.ts'
import type { Platform } from '../support/platform.ts'

export const run = promisify(execFile)

export type PreparedSite = { site_id: string; upload_id: string; presigned: Presigned[] }
type Game = { game_id: string; prod_id: string }

export async function prepareSite(
  { client }: Platform,
  { game_id }: Game,
  files: Record<string, Buffer>,
): Promise<PreparedSite> {
  const { site_id, upload_id, presigned_requests } = await client.call(createGameCdnSite, {
    params: { game_id },
    body: {
      display_name: 'Site',
      files: Object.entries(files).map(([path, bytes]) => ({ path, content_length: bytes.length })),
    },
  })
  return { site_id, upload_id, presigned: presigned_requests }
}

/** A presigned address names the main domain, where the test's edge does not listen. */
function addressOf(platform: Platform, { url }: Presigned): string {
  const { pathname, search } = new URL(url)
  return pathname.startsWith('/objects/') ? `${platform.api_url}${pathname}${search}` : url
}

export async function putBytes(platform: Platform, presigned: Presigned, bytes: Buffer): Promise<Response> {
  return fetch(addressOf(platform, presigned), { method: 'PUT', body: new Uint8Array(bytes) })
}

/** Uploads and deploys a site. Returns the host that serves it. */
export async function deploySite(platform: Platform, game: Game, files: Record<string, Buffer>): Promise<string> {
  const site = await prepareSite(platform, game, files)
  for (const presigned of site.presigned) {
    const response = await putBytes(platform, presigned, files[presigned.path]!)
    assert.equal(response.status, 200, await response.text())
  }
  await platform.client.call(completeUpload, { params: { upload_id: site.upload_id } })
  return deploy(platform, game, site.site_id)
}

export async function deploy(platform: Platform, { game_id, prod_id }: Game, site_id: string): Promise<string> {
  const { client } = platform
  const version = { display_name: site_id, config: { cdn: { site_id } } }
  const { version_id } = await client.call(createGameVersion, { params: { game_id }, body: version })
  const params = { game_id, namespace_id: prod_id }
  await client.call(updateGameNamespaceVersion, { params, body: { version_id } })
  const { game } = await client.call(getGameById, { params: { game_id } })
  return `${game.name_id}.cdn.localhost`
}

export async function visit(platform: Platform, host: string, path: string, range?: string) {
  const port = Number(new URL(platform.edge_url).port)
  return get({ port }, path, { headers: { host, ...(range === undefined ? {} : { range }) } })
}

/** The rows of the files of an upload. */
export function filesOf({ ctx }: Platform, upload_id: string) {
  return ctx.db
    .selectFrom('upload_files')
    .select(['path', 'object_key', 'sha256', 'content_length', 'is_packed'])
    .where('upload_id', '=', upload_id)
    .orderBy('path')
    .execute()
}

export async function temporaryFile(t: TestContext, bytes: Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-s3-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'file')
  await writeFile(path, bytes)
  return path
}
