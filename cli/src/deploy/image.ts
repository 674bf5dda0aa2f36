// The container image of server.image: a tar, or an OCI image layout as a folder. The platform unpacks and checks it; here it is
// only found out what the tar is.
import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import zlib from 'node:zlib'
import tar from 'tar-stream'
import { EXIT, Failure } from '../failure.ts'
import { sizeText } from '../progress.ts'
import type { Terminal } from '../terminal.ts'
import { codeOf, unreadable } from './file-errors.ts'
import { type FolderFile, type HashedFile, hashFiles, listFiles, PACKED_FILES_MAX, readLocalFile } from './files.ts'

/** Entries of a tar of an image that are read to find its manifest. */
const ENTRIES_READ_MAX = 10_000
const MAGIC_BYTES = 4
/** What an OCI image layout consists of. */
const LAYOUT_PATH = /^(?:oci-layout|index\.json|blobs(?:\/.*)?)$/

export type ContainerImageKind = 'docker_image' | 'oci_bundle'
/** `path`: as a user knows it. */
export type ServerImage = { path: string } & ({ file: HashedFile } | { layout: HashedFile[] })

/** Throws a Failure when there is no image. */
export async function readImage(terminal: Terminal, path: string): Promise<ServerImage> {
  const stats = await lstat(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw unreadable(path, error)
    throw new Failure(`The image of the server does not exist: ${path}`, {
      exit_code: EXIT.usage,
      remedy: 'Correct server.image in muster.yaml, or let server.build write it.',
    })
  })
  if (stats.isDirectory()) return { path, layout: await readLayout(terminal, path) }
  if (!stats.isFile()) {
    throw new Failure(`The image of the server is neither a file nor a folder: ${path}`, {
      exit_code: EXIT.usage,
      remedy: 'Correct server.image in muster.yaml: it names the file itself, and no link.',
    })
  }
  const { size: bytes, mtimeMs: mtime_ms } = stats
  const file: FolderFile = { path: basename(path), source: path, bytes, mtime_ms, is_executable: false }
  return { path, file: { ...file, sha256: await hashImage(terminal, file) } }
}

async function readLayout(terminal: Terminal, folder: string): Promise<HashedFile[]> {
  const files = await listFiles(folder, { isIgnored: (path) => !LAYOUT_PATH.test(path) }, PACKED_FILES_MAX)
  const missing = ['oci-layout', 'index.json'].find((name) => !files.some(({ path }) => path === name))
  if (missing === undefined) return hashFiles(files, terminal.signal)
  throw new Failure(`The folder of server.image is no OCI image layout, as it has no ${missing}: ${folder}`, {
    exit_code: EXIT.usage,
    remedy: 'Write one, for example: buildah push IMAGE oci:FOLDER',
  })
}

async function hashImage(terminal: Terminal, file: FolderFile): Promise<string> {
  const hash = createHash('sha256')
  const bar = terminal.progress('read server', file.bytes)
  try {
    for await (const chunk of readLocalFile(file, { start: 0, length: file.bytes, signal: terminal.signal })) {
      hash.update(chunk)
      bar.advance(chunk.length)
    }
    bar.done(`server: image ${file.path}, ${sizeText(file.bytes)}`)
    return hash.digest('hex')
  } catch (error) {
    bar.done('server: image not read')
    throw error
  }
}

/** `manifest.json` is that of `docker save`, whose newer releases also write the `index.json` of an OCI image layout. */
export async function imageKindOf(file: FolderFile, signal: AbortSignal): Promise<ContainerImageKind> {
  const names = new Set<string>()
  try {
    await readNames(file, signal, (name) => {
      names.add(name)
      return name !== 'manifest.json' && names.size < ENTRIES_READ_MAX
    })
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Failure) throw error
    throw notAnImage(file, `is not a readable tar, tar.gz or tar.zst (${(error as Error).message})`)
  }
  if (names.has('manifest.json')) return 'docker_image'
  if (names.has('index.json')) return 'oci_bundle'
  throw notAnImage(file, 'has neither a manifest.json nor an index.json')
}

function notAnImage({ source }: FolderFile, why: string): Failure {
  return new Failure(`server.image: ${source} ${why}.`, {
    exit_code: EXIT.usage,
    remedy: 'Save the image again: docker save IMAGE > FILE, or buildah push IMAGE oci-archive:FILE',
  })
}

/** Calls `take` for each entry until it returns false. */
async function readNames(file: FolderFile, signal: AbortSignal, take: (name: string) => boolean): Promise<void> {
  const found = new AbortController()
  const bytes = Readable.from(readLocalFile(file, { start: 0, length: file.bytes, signal }))
  const extract = tar.extract()
  extract.on('entry', ({ name }, body, next) => {
    // The pipeline rejects with the same error.
    body.on('error', () => {})
    if (!take(name.replace(/^\.\//, ''))) return found.abort()
    body.once('end', next)
    body.resume()
  })
  const magic = await readMagic(file, signal)
  const read =
    magic === null
      ? pipeline(bytes, extract, { signal: found.signal })
      : pipeline(bytes, magic, extract, { signal: found.signal })
  await read.catch((error: unknown) => {
    if (!found.signal.aborted) throw error
  })
}

/** What decompresses the file. Null: it is not compressed. */
async function readMagic(file: FolderFile, signal: AbortSignal) {
  const length = Math.min(MAGIC_BYTES, file.bytes)
  let magic = ''
  for await (const chunk of readLocalFile(file, { start: 0, length, signal })) magic += chunk.toString('hex')
  if (magic.startsWith('1f8b')) return zlib.createGunzip()
  return magic === '28b52ffd' ? createZstdReader(file) : null
}

function createZstdReader({ source }: FolderFile): zlib.ZstdDecompress {
  // Node has it from 22.15 on, and the command runs on older ones too.
  const { createZstdDecompress }: Partial<typeof zlib> = zlib
  if (createZstdDecompress !== undefined) return createZstdDecompress()
  throw new Failure(
    `server.image: ${source} is compressed with zstd, which Node ${process.versions.node} cannot read.`,
    {
      exit_code: EXIT.usage,
      remedy: 'Run the command with Node 22.15 or newer, or save the image with gzip or uncompressed.',
    },
  )
}
