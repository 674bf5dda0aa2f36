// Brings the server and the site to the platform. Contents that are there are not sent: a build with the same files is used
// again, found by its tag; a site with the same files is remembered in `.muster/`.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  completeUpload,
  createGameBuild,
  createGameCdnSite,
  listGameBuilds,
  listGameCdnSites,
  MULTIPART_BYTES_MIN,
  PART_BYTES,
  type ResponseOf,
} from '@muster/contract'
import { Failure } from '../failure.ts'
import { sizeText } from '../progress.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { bytesOf, contentHashOf, type HashedFile } from './files.ts'
import { packFiles } from './pack.ts'
import { type Sending, sendAll } from './send.ts'
import { readState, rememberUpload, STATE_FOLDER } from './state.ts'

/** The tag of a build that says which files it has. */
const CONTENT_TAG = 'muster-content'
/** Characters of a content hash in a name. */
const SHORT_HASH = 12

export type UploadContext = {
  terminal: Terminal
  session: Session
  game: { game_id: string; name_id: string }
  /** The folder of muster.yaml, whose `.muster/` keeps the state. */
  folder: string
}
/** `id`: of the build or the site. `sent_bytes` is 0 when everything was there. */
export type Uploaded = { id: string; sent_bytes: number }

export async function uploadServer(ctx: UploadContext, files: readonly HashedFile[]): Promise<Uploaded> {
  const { terminal, session, game } = ctx
  const content_hash = contentHashOf(files)
  const query = { tags: [`${CONTENT_TAG}=${content_hash}`] }
  const { builds } = await session.client.call(listGameBuilds, { params: game, query })
  const there = builds.find(({ complete }) => complete)
  if (there !== undefined) {
    terminal.note(`server: ${countText(files)}, unchanged`)
    return { id: there.build_id, sent_bytes: 0 }
  }
  const target = join(ctx.folder, STATE_FOLDER, 'deploy', `${content_hash}.tar.gz`)
  const packing = terminal.progress('pack server', bytesOf(files))
  const archive = await packFiles(files, target, { signal: terminal.signal, advance: packing.advance })
  packing.done(`server: ${countText(files)}, packed to ${sizeText(archive.bytes)}`)
  const { build_id, upload_id, presigned } = await createBuild(ctx, archive, content_hash)
  await sendFiles(ctx, 'server', [archive], presigned)
  await session.client.call(completeUpload, { params: { upload_id } })
  await rm(target, { force: true })
  return { id: build_id, sent_bytes: archive.bytes }
}

type Presigned = ResponseOf<typeof createGameCdnSite>['presigned_requests']

async function createBuild(ctx: UploadContext, archive: HashedFile, content_hash: string) {
  const { terminal, session, game } = ctx
  const in_parts = archive.bytes >= MULTIPART_BYTES_MIN
  const short = content_hash.slice(0, SHORT_HASH)
  const build = await session.client.call(createGameBuild, {
    params: game,
    body: {
      display_name: `${game.name_id} ${short}`,
      image_tag: `${game.name_id}:${short}-${terminal.now().toString(36)}`,
      image_file: { path: archive.path, content_length: archive.bytes },
      kind: 'archive',
      compression: 'gzip',
      multipart_upload: in_parts,
      tags: { [CONTENT_TAG]: content_hash },
    },
  })
  const { build_id, upload_id, image_presigned_request, image_presigned_requests } = build
  const presigned = image_presigned_requests ?? (image_presigned_request ? [image_presigned_request] : [])
  return { build_id, upload_id, presigned }
}

export async function uploadSite(ctx: UploadContext, files: readonly HashedFile[]): Promise<Uploaded> {
  const { terminal, session, game, folder } = ctx
  const content_hash = contentHashOf(files)
  const { sites } = await session.client.call(listGameCdnSites, { params: game })
  const known = readState(folder).find(
    (upload) => upload.kind === 'site' && upload.url === session.url && upload.content_hash === content_hash,
  )
  const there = sites.find(({ site_id, complete }) => complete && site_id === known?.id)
  if (there !== undefined) {
    terminal.note(`site: ${countText(files)}, unchanged`)
    return { id: there.site_id, sent_bytes: 0 }
  }
  const { site_id, upload_id, presigned_requests } = await session.client.call(createGameCdnSite, {
    params: game,
    body: {
      display_name: `${game.name_id} ${content_hash.slice(0, SHORT_HASH)}`,
      files: files.map(({ path, bytes }) => ({ path, content_length: bytes })),
      multipart_upload: files.some(({ bytes }) => bytes > PART_BYTES),
    },
  })
  const state = { url: session.url, game_id: game.game_id, kind: 'site', content_hash, id: site_id, upload_id } as const
  rememberUpload(folder, state)
  await sendFiles(ctx, 'site', files, presigned_requests)
  await session.client.call(completeUpload, { params: { upload_id } })
  return { id: site_id, sent_bytes: bytesOf(files) }
}

async function sendFiles(
  { terminal }: UploadContext,
  title: string,
  files: readonly HashedFile[],
  presigned: Presigned,
): Promise<void> {
  const by_path = new Map(files.map((file) => [file.path, file]))
  const sendings: Sending[] = presigned.map(({ path, url, byte_offset, content_length }) => {
    const file = by_path.get(path)
    if (file === undefined) throw new Failure(`The platform asks for ${path}, which was not announced.`)
    return { file, url, byte_offset, content_length, content_type: null }
  })
  const total_bytes = sendings.reduce((sum, { content_length }) => sum + content_length, 0)
  const bar = terminal.progress(`send ${title}`, total_bytes)
  try {
    await sendAll(sendings, { signal: terminal.signal, advance: bar.advance })
    bar.done(`${title}: sent ${sizeText(total_bytes)}`)
  } catch (error) {
    bar.done(`${title}: not sent`)
    throw error
  }
}

function countText(files: readonly HashedFile[]): string {
  return `${files.length} ${files.length === 1 ? 'file' : 'files'}, ${sizeText(bytesOf(files))}`
}
