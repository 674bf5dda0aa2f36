// An image for lobbies in containers, without a registry: a shell, a few programs and the Node.js that runs the tests, with
// the libraries that they load.
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Engine, run } from '../container-engine.ts'

export const BASE_IMAGE = 'muster-test-base'
const PROGRAMS = ['sh', 'sleep', 'cat', 'ls', 'head', 'id'] as const

/** `folder`: is made, and removed again. */
export async function importBaseImage(engine: Engine, folder: string): Promise<void> {
  const files = new Map<string, string>([['/usr/local/bin/node', process.execPath]])
  for (const name of PROGRAMS) files.set(`/bin/${name}`, `/bin/${name}`)
  for (const program of [...files.values()]) for (const library of librariesOf(program)) files.set(library, library)
  for (const [path, source] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    symlinkSync(source, join(folder, path))
  }
  for (const name of ['build', 'scratch', 'tmp', 'etc']) mkdirSync(join(folder, name), { recursive: true })
  await run('sh', ['-c', `tar -C "$1" -hc . | docker import - ${BASE_IMAGE}`, 'sh', folder], { env: engine.env })
  rmSync(folder, { recursive: true })
}

function librariesOf(program: string): string[] {
  const listed = execFileSync('ldd', [program], { encoding: 'utf8' })
  return [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!)
}
