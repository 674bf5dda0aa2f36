// The package.json of the packed `muster`. Its dependencies are those of the packed workspaces, at the versions that the
// lock file has and the tests ran with. It has no install script.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Manifest = {
  name: string
  version: string
  description: string
  license: string
  type: string
  engines: Record<string, string>
  scripts?: Record<string, string>
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  overrides?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, object>
}
type Lock = { packages: Record<string, { version?: string }> }

/** Names of workspaces: none of them is installed from npm. */
const WORKSPACE = /^(@musterhost\/|musterhost-)/
/** npm runs these for the package that is packed, and never where it is installed. */
const KEPT_SCRIPTS = ['prepack', 'postpack']

/** `root`: the checkout. `bin`: the path of the program in the package. `files`: what the package includes. */
export function packedManifest(
  root: string,
  own: Manifest,
  options: { workspaces: readonly string[]; bin: string; files: readonly string[] },
): object {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  const manifests = options.workspaces.map((name) => ({ name, manifest: readManifest(root, name) }))
  const exact = (kind: 'dependencies' | 'optionalDependencies'): Record<string, string> => {
    const found = manifests.flatMap(({ name, manifest }) =>
      Object.keys(manifest[kind] ?? {})
        .filter((dependency) => !WORKSPACE.test(dependency))
        .map((dependency) => [dependency, versionOf(lock, name, dependency)] as const),
    )
    return Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)))
  }
  const { name, version, description, license, type, engines, scripts = {} } = own
  return {
    name,
    version,
    description,
    license,
    type,
    engines,
    bin: { muster: options.bin, [name]: options.bin },
    files: options.files,
    scripts: Object.fromEntries(KEPT_SCRIPTS.map((script) => [script, scripts[script]])),
    // npm reads `overrides` only at the root. A direct dependency of that version is what the others then share.
    dependencies: { ...exact('dependencies'), ...own.overrides },
    // Packages that one command needs and npm does not install with the others.
    peerDependencies: Object.assign({}, ...manifests.map(({ manifest }) => manifest.peerDependencies)),
    peerDependenciesMeta: Object.assign({}, ...manifests.map(({ manifest }) => manifest.peerDependenciesMeta)),
    optionalDependencies: { ...own.optionalDependencies, ...exact('optionalDependencies') },
  }
}

function readManifest(root: string, name: string): Partial<Manifest> {
  return JSON.parse(readFileSync(join(root, name, 'package.json'), 'utf8')) as Partial<Manifest>
}

/** The version that npm installed for the workspace: its own copy, or the one that all share. */
function versionOf({ packages }: Lock, workspace: string, dependency: string): string {
  const entry = packages[`${workspace}/node_modules/${dependency}`] ?? packages[`node_modules/${dependency}`]
  if (entry?.version === undefined) throw new Error(`package-lock.json has no ${dependency}; run "npm install".`)
  return entry.version
}
