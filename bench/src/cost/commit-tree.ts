// The program of another commit in a folder of its own: its own modules, and the libraries of this checkout.
import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { migrate } from '@musterhost/server/database/migrate'

const ROOT = join(import.meta.dirname, '../../..')

export type CommitTree = {
  /** The first digits of its hash. */
  name: string
  /** What a role runs. */
  program: string
  migrate: typeof migrate
  /** Whether it was made for the libraries of this checkout. */
  has_same_libraries: boolean
  remove: () => void
}

/** `commit`: as git names it. Throws with the words of git when there is none. */
export async function openCommitTree(commit: string): Promise<CommitTree> {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  const name = git('rev-parse', '--short', '--verify', `${commit}^{commit}`)
  const folder = await mkdtemp(join(tmpdir(), 'muster-commit-'))
  execFileSync('sh', ['-ec', 'git archive "$1" | tar -x -C "$2"', 'sh', name, folder], { cwd: ROOT })
  linkModules(join(ROOT, 'node_modules'), join(folder, 'node_modules'), folder)
  const changed = git('diff', '--name-only', name, '--', 'package-lock.json')
  return {
    name,
    program: join(folder, 'server/src/main.ts'),
    migrate: ((await import(join(folder, 'server/src/database/migrate.ts'))) as { migrate: typeof migrate }).migrate,
    has_same_libraries: changed === '',
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** A package of this checkout becomes the one of the folder; every other is a link to where it is. */
function linkModules(from: string, to: string, folder: string): void {
  mkdirSync(to)
  for (const name of readdirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)]
    const is_link = lstatSync(source).isSymbolicLink()
    if (name.startsWith('@') && !is_link) linkModules(source, target, folder)
    else symlinkSync(is_link ? join(folder, relative(realpathSync(ROOT), realpathSync(source))) : source, target)
  }
}
