// The version of everything is that of the package.json at the root, the only one that a person writes. The others are
// written from it, because npm and the programs read them.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

type Manifest = { name: string; version: string; workspaces?: string[] }
type Lock = { version: string; packages: Record<string, { version?: string }> }

export function rootVersion(root: string): string {
  return readManifest(join(root, 'package.json')).version
}

/** The files below the root that say another version than it. */
export function otherVersions(root: string): string[] {
  const version = rootVersion(root)
  const folders = workspacesOf(root)
  const wrong = folders
    .map((folder) => `${folder}/package.json`)
    .filter((path) => readManifest(join(root, path)).version !== version)
  const lock = readLock(root)
  const entries = ['', ...folders].map((folder) => lock.packages[folder]?.version)
  const is_lock_right = lock.version === version && entries.every((one) => one === version)
  return is_lock_right ? wrong : [...wrong, 'package-lock.json']
}

/** Writes the version of the root into the other files. Returns those that it changed. */
export function writeVersions(root: string): string[] {
  const version = rootVersion(root)
  const changed = otherVersions(root)
  for (const path of changed) {
    if (path === 'package-lock.json') {
      const lock = readLock(root)
      lock.version = version
      for (const folder of ['', ...workspacesOf(root)]) Object.assign(lock.packages[folder] ?? {}, { version })
      writeJson(join(root, path), lock)
    } else writeJson(join(root, path), { ...readManifest(join(root, path)), version })
  }
  return changed
}

function workspacesOf(root: string): string[] {
  const { workspaces = [] } = readManifest(join(root, 'package.json'))
  return workspaces
    .flatMap((pattern) => globSync(`${pattern}/package.json`, { cwd: root }))
    .map((path) => path.slice(0, -'/package.json'.length))
    .sort()
}

function readManifest(file: string): Manifest {
  return JSON.parse(readFileSync(file, 'utf8')) as Manifest
}

function readLock(root: string): Lock {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
}
