// The layer of an archive build: the files of its folder in /build, with the same bytes for the same folder.
import { createReadStream } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Pack, pack } from 'tar-stream'
import { BUILD_MOUNT } from '../driver.ts'

const ROOT = BUILD_MOUNT.slice(1)
const TIME = new Date(0)
const FOLDER_MODE = 0o755

/** The tar. An error of a file ends it. */
export function layerOfFolder(folder: string): Readable {
  const tar = pack()
  const body = tar.pipe(new PassThrough())
  tar.on('error', (error) => body.destroy(error))
  addFolder(tar, folder, ROOT)
    .then(() => tar.finalize())
    .catch((error: Error) => tar.destroy(error))
  return body
}

async function addFolder(tar: Pack, folder: string, name: string): Promise<void> {
  await addEntry(tar, { name: `${name}/`, type: 'directory', mode: FOLDER_MODE, mtime: TIME })
  for (const entry of (await readdir(folder)).sort()) {
    const path = join(folder, entry)
    const inside = `${name}/${entry}`
    const facts = await lstat(path)
    const common = { name: inside, mode: facts.mode & 0o777, mtime: TIME }
    if (facts.isDirectory()) await addFolder(tar, path, inside)
    else if (facts.isSymbolicLink()) await addEntry(tar, { ...common, type: 'symlink', linkname: await readlink(path) })
    else if (facts.isFile()) {
      await pipeline(createReadStream(path), tar.entry({ ...common, type: 'file', size: facts.size }))
    }
  }
}

function addEntry(tar: Pack, header: Parameters<Pack['entry']>[0]): Promise<void> {
  return new Promise((resolve, reject) => {
    tar.entry(header, (error) => (error ? reject(error) : resolve()))
  })
}
