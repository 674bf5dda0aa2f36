// An image for lobbies in containers, without a registry: a shell, a few programs and the Node.js that runs the tests, with
// the libraries that they load.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Engine, run } from '../support/container-engine.ts'

export const BASE_IMAGE = 'muster-test-base'
/** The same with Python. */
export const PYTHON_IMAGE = 'muster-test-python'
const PROGRAMS = ['sh', 'sleep', 'cat', 'ls', 'head', 'id'] as const
/** Tests, tools and documentation. */
const NOT_OF_PYTHON = ['test', 'idlelib', 'lib2to3', 'pydoc_data', 'config-*', 'dist-packages', '__pycache__']

/** `folder`: is made, and removed again. */
export async function importBaseImage(engine: Engine, folder: string): Promise<void> {
  await importImage(engine, folder, BASE_IMAGE, programFiles(), [])
}

export async function importPythonImage(engine: Engine, folder: string): Promise<void> {
  const library = execFileSync('/usr/bin/python3', ['-c', 'import sysconfig; print(sysconfig.get_path("stdlib"))'], {
    encoding: 'utf8',
  })
  const path = library.trim()
  const files = programFiles()
  files.set('/usr/bin/python3', realpathSync('/usr/bin/python3'))
  files.set(path, path)
  const modules = readdirSync(join(path, 'lib-dynload')).map((name) => join(path, 'lib-dynload', name))
  for (const file of ['/usr/bin/python3', ...modules]) for (const one of librariesOf(file)) files.set(one, one)
  await importImage(engine, folder, PYTHON_IMAGE, files, NOT_OF_PYTHON)
}

/** By path in the image. */
function programFiles(): Map<string, string> {
  const files = new Map<string, string>([['/usr/local/bin/node', process.execPath]])
  for (const name of PROGRAMS) files.set(`/bin/${name}`, `/bin/${name}`)
  for (const program of [...files.values()]) for (const library of librariesOf(program)) files.set(library, library)
  return files
}

async function importImage(
  engine: Engine,
  folder: string,
  name: string,
  files: ReadonlyMap<string, string>,
  excluded: readonly string[],
): Promise<void> {
  for (const [path, source] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    symlinkSync(source, join(folder, path))
  }
  for (const one of ['build', 'tmp', 'etc']) mkdirSync(join(folder, one), { recursive: true })
  chmodSync(join(folder, 'tmp'), 0o1777)
  const script = 'folder=$1; name=$2; shift 2; tar -C "$folder" "$@" -hc . | docker import - "$name"'
  const excludes = excluded.map((one) => `--exclude=${one}`)
  await run('sh', ['-c', script, 'sh', folder, name, ...excludes], { env: engine.env })
  rmSync(folder, { recursive: true })
}

function librariesOf(program: string): string[] {
  const listed = execFileSync('ldd', [program], { encoding: 'utf8' })
  return [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!)
}
