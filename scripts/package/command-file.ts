// The command as one file, which a platform serves to those who deploy to it (`npm install --global http://PLATFORM/cli.tgz`).
// It depends on no other package, so that npm asks no registry about it.
import {
  chmodSync,
  createWriteStream,
  globSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { pack } from 'tar-stream'
import { writeCommandPackage } from './packages.ts'

/** `file`: replaced at once, so that a reader finds a whole one. */
export async function writeCommandFile(root: string, file: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-command-'))
  const part = `${file}.${process.pid}`
  try {
    await writeCommandPackage(root, folder, { has_platform: false })
    chmodSync(join(folder, 'dist/muster.js'), 0o755)
    await writeTarball(folder, part)
    renameSync(part, file)
  } finally {
    rmSync(folder, { recursive: true, force: true })
    rmSync(part, { force: true })
  }
}

/** In the form of npm: everything is below `package/`. The same files give the same bytes. */
async function writeTarball(folder: string, file: string): Promise<void> {
  const tar = pack()
  const paths = globSync('**/*', { cwd: folder })
    .filter((path) => lstatSync(join(folder, path)).isFile())
    .sort()
  for (const path of paths) {
    const mode = lstatSync(join(folder, path)).mode & 0o777
    tar.entry({ name: `package/${path}`, mode, mtime: new Date(0) }, readFileSync(join(folder, path)))
  }
  tar.finalize()
  await pipeline(tar, createGzip({ level: 9 }), createWriteStream(file))
}
