// Brings the server and the site to the platform. Contents that are there are not sent. A build with the same files is used again,
// found by its tag; a site with the same files is remembered in `.muster/`. The platform takes files that its group stores by
// their hash. An upload that was interrupted continues with the parts that have not arrived.

import { rm } from 'node:fs/promises'
import { join, sep } from 'node:path'
import {
  ApiError,
  completeUpload,
  createGameBuild,
  createGameCdnSite,
  getUpload,
  listGameBuilds,
  listGameCdnSites,
  MULTIPART_BYTES_MIN,
  PARTS_MAX,
  type ResponseOf,
  UPLOAD_FILES_MAX,
} from '@musterhost/contract'
import { FIRST_PART_BYTES, shorterPartBytes } from '@musterhost/contract/upload-parts'
import { Failure } from '../failure.ts'
import { sizeText } from '../progress.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { bytesOf, contentHashOf, type HashedFile, withNormalNames } from './files.ts'
import { type ContainerImageKind, imageKindOf, type ServerImage } from './image.ts'
import { packFiles } from './pack.ts'
import { BodyTooLongFailure, type Sending, sendAll } from './send.ts'
import { readState, rememberUpload, STATE_FOLDER } from './state.ts'

/** Parts of an upload that are read. */
const PARTS_READ_MAX = UPLOAD_FILES_MAX + PARTS_MAX
/** The tag of a build that says which files it has. */
const CONTENT_TAG = 'muster-content'
/** The tag of a build with the SHA-256 of its archive: only the same bytes continue an upload. */
const ARCHIVE_TAG = 'muster-archive'
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

/** `files`: those of an archive. */
export type ServerSource = { files: readonly HashedFile[] } | ServerImage

type BuildKind = 'archive' | ContainerImageKind
/** `tag`: of builds with the same content. */
type Source = { tag: string; text: string; prepare: () => Promise<{ kind: BuildKind; file: HashedFile }> }

export async function uploadServer(ctx: UploadContext, server: ServerSource): Promise<Uploaded> {
  const { terminal, session, game } = ctx
  const target = join(ctx.folder, STATE_FOLDER, 'deploy')
  const source = sourceOf(ctx, server, target)
  const query = { tags: [`${CONTENT_TAG}=${source.tag}`] }
  const { builds } = await session.client.call(listGameBuilds, { params: game, query })
  const there = builds.find(({ complete }) => complete)
  if (there !== undefined) {
    terminal.note(`server: ${source.text}, unchanged`)
    return { id: there.build_id, sent_bytes: 0 }
  }
  const { kind, file } = await source.prepare()
  const begun = builds.find(({ tags }) => tags[ARCHIVE_TAG] === file.sha256)
  const rest = begun === undefined ? null : await missingParts(ctx, begun.upload_id)
  const create = (part_bytes: number) => createBuild(ctx, { kind, file, tag: source.tag, part_bytes })
  const prepared =
    begun !== undefined && rest !== null ? { id: begun.build_id, upload_id: begun.upload_id, presigned: rest } : null
  const { upload_id, ...uploaded } = await sendInParts(ctx, { title: 'server', files: [file], prepared, create })
  await completeBuild(ctx, server, upload_id)
  if (file.source.startsWith(`${target}${sep}`)) await rm(file.source, { force: true })
  return uploaded
}

/** `folder`: for an archive that is packed. */
function sourceOf({ terminal }: UploadContext, server: ServerSource, folder: string): Source {
  if ('file' in server) {
    const { file } = server
    const text = `image ${file.path}`
    const prepare = async () => ({ kind: await imageKindOf(file, terminal.signal), file })
    return { tag: `image-${file.sha256}`, text, prepare }
  }
  const is_image = 'layout' in server
  const files = is_image ? server.layout : server.files
  const hash = contentHashOf(files)
  const text = is_image ? `image layout, ${countText(files)}` : countText(files)
  async function prepare() {
    const packing = terminal.progress('pack server', bytesOf(files))
    const { signal } = terminal
    const file = await packFiles(files, join(folder, `${hash}.tar.gz`), { signal, advance: packing.advance })
    packing.done(`server: ${text}, packed to ${sizeText(file.bytes)}`)
    return { kind: is_image ? ('oci_bundle' as const) : ('archive' as const), file }
  }
  return { tag: is_image ? `layout-${hash}` : hash, text, prepare }
}

/** An image that the platform refuses is named with its member of muster.yaml. */
async function completeBuild({ session }: UploadContext, server: ServerSource, upload_id: string): Promise<void> {
  try {
    await session.client.call(completeUpload, { params: { upload_id } })
  } catch (error) {
    if (!('path' in server) || !(error instanceof ApiError) || error.code !== 'ARCHIVE_INVALID') throw error
    throw new Failure(`server.image: the platform refused ${server.path}: ${error.message}`, {
      ...(error.ray_id === undefined ? {} : { ray_id: error.ray_id }),
      cause: error,
    })
  }
}

/** The parts of an upload that have not arrived. Null: it does not exist any more, or is complete. */
async function missingParts({ session }: UploadContext, upload_id: string): Promise<Presigned | null> {
  const missing: Presigned = []
  try {
    for await (const page of uploadPages(session, upload_id)) {
      if (page.complete) return null
      missing.push(...page.presigned_requests)
    }
    return missing
  } catch (error) {
    // The platform removes uploads that nobody completes.
    if (error instanceof ApiError && error.code === 'UPLOAD_NOT_FOUND') return null
    throw error
  }
}

/** All parts of an upload, in pages. */
export async function* uploadPages(session: Session, upload_id: string): AsyncGenerator<ResponseOf<typeof getUpload>> {
  for (let offset = 0; offset < PARTS_READ_MAX; ) {
    const page = await session.client.call(getUpload, { params: { upload_id }, query: { offset } })
    yield page
    offset += page.parts.length
    if (page.parts.length === 0 || offset >= page.part_count) return
  }
}

type Presigned = ResponseOf<typeof createGameCdnSite>['presigned_requests']
type Prepared = { id: string; upload_id: string; presigned: Presigned }

/** Prepares an upload again with shorter parts, while something in front of the platform refuses or cuts the longer ones. */
async function sendInParts(
  ctx: UploadContext,
  { title, files, prepared, create }: SendPlan,
): Promise<Uploaded & { upload_id: string }> {
  let upload = prepared ?? (await create(FIRST_PART_BYTES))
  // Each repetition has shorter parts than the one before.
  for (;;) {
    const { id, upload_id, presigned } = upload
    try {
      return { id, upload_id, sent_bytes: await sendFiles(ctx, title, files, presigned) }
    } catch (error) {
      const shorter = error instanceof BodyTooLongFailure ? shorterPartBytes(error.body_bytes) : undefined
      if (!(error instanceof BodyTooLongFailure) || shorter === undefined) throw error
      ctx.terminal.note(`${title}: ${error.message} Parts of ${sizeText(shorter)} are tried.`)
      upload = await create(shorter)
    }
  }
}

/** `prepared`: an upload that was interrupted, with what is missing. */
type SendPlan = {
  title: string
  files: readonly HashedFile[]
  prepared: Prepared | null
  create: (part_bytes: number) => Promise<Prepared>
}

async function createBuild(
  ctx: UploadContext,
  { kind, file, tag, part_bytes }: { kind: BuildKind; file: HashedFile; tag: string; part_bytes: number },
): Promise<Prepared> {
  const { terminal, session, game } = ctx
  const in_parts = file.bytes >= MULTIPART_BYTES_MIN
  const short = tag.slice(tag.indexOf('-') + 1).slice(0, SHORT_HASH)
  const build = await session.client.call(createGameBuild, {
    params: game,
    body: {
      display_name: `${game.name_id} ${short}`,
      image_tag: `${game.name_id}:${short}-${terminal.now().toString(36)}`,
      image_file: { path: file.path, content_length: file.bytes, sha256: file.sha256 },
      kind,
      multipart_upload: in_parts,
      ...(in_parts ? { part_bytes } : {}),
      tags: { [CONTENT_TAG]: tag, [ARCHIVE_TAG]: file.sha256 },
    },
  })
  const { build_id, upload_id, image_presigned_request, image_presigned_requests } = build
  const presigned = image_presigned_requests ?? (image_presigned_request ? [image_presigned_request] : [])
  return { id: build_id, upload_id, presigned }
}

export async function uploadSite(ctx: UploadContext, listed: readonly HashedFile[]): Promise<Uploaded> {
  const { terminal, session, game, folder } = ctx
  const files = withNormalNames(listed)
  const content_hash = contentHashOf(files)
  const { sites } = await session.client.call(listGameCdnSites, { params: game })
  const known = readState(folder).find(
    ({ kind, url, game_id, content_hash: hash }) =>
      kind === 'site' && url === session.url && game_id === game.game_id && hash === content_hash,
  )
  const there = sites.find(({ site_id, complete }) => complete && site_id === known?.id)
  if (there !== undefined) {
    terminal.note(`site: ${countText(files)}, unchanged`)
    return { id: there.site_id, sent_bytes: 0 }
  }
  const rest = known === undefined ? null : await missingParts(ctx, known.upload_id)
  const create = (part_bytes: number) => createSite(ctx, { files, content_hash, part_bytes })
  const prepared =
    known !== undefined && rest !== null ? { id: known.id, upload_id: known.upload_id, presigned: rest } : null
  const { upload_id, ...uploaded } = await sendInParts(ctx, { title: 'site', files, prepared, create })
  await session.client.call(completeUpload, { params: { upload_id } })
  return uploaded
}

async function createSite(
  { session, game, folder }: UploadContext,
  { files, content_hash, part_bytes }: { files: readonly HashedFile[]; content_hash: string; part_bytes: number },
): Promise<Prepared> {
  const in_parts = files.some(({ bytes }) => bytes > part_bytes)
  const { site_id, upload_id, presigned_requests } = await session.client.call(createGameCdnSite, {
    params: game,
    body: {
      display_name: `${game.name_id} ${content_hash.slice(0, SHORT_HASH)}`,
      files: files.map(({ path, bytes, sha256 }) => ({ path, content_length: bytes, sha256 })),
      multipart_upload: in_parts,
      ...(in_parts ? { part_bytes } : {}),
    },
  })
  const { game_id } = game
  rememberUpload(folder, { url: session.url, game_id, kind: 'site', content_hash, id: site_id, upload_id })
  return { id: site_id, upload_id, presigned: presigned_requests }
}

/** Returns how many bytes were sent. */
async function sendFiles(
  { terminal }: UploadContext,
  title: string,
  files: readonly HashedFile[],
  presigned: Presigned,
): Promise<number> {
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
    bar.done(`${title}: ${sentText(sendings, files, total_bytes)}`)
    return total_bytes
  } catch (error) {
    bar.done(`${title}: not sent`)
    throw error
  }
}

function countText(files: readonly HashedFile[]): string {
  return `${files.length} ${files.length === 1 ? 'file' : 'files'}, ${sizeText(bytesOf(files))}`
}

/** `sent 1 of 500 files, 19.5 KiB`. */
function sentText(sendings: readonly Sending[], files: readonly HashedFile[], total_bytes: number): string {
  if (sendings.length === 0) return `${countText(files)}; everything was there`
  const { size } = new Set(sendings.map(({ file }) => file.path))
  return `sent ${files.length === 1 ? '' : `${size} of ${files.length} files, `}${sizeText(total_bytes)}`
}
