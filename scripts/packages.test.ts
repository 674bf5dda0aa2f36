// Users install with the Node of their machine. npm prints a warning for each package that does not support it.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'

/** The oldest Node that README and `engines` name. The platform itself runs under the Node that is installed. */
const OLDEST_NODE = '20.19.0'

/** npm replaces this host by the registry of the user's settings. */
const REGISTRY = 'https://registry.npmjs.org/'
/** Every folder with packages of its own. */
const LOCKS = ['package-lock.json', 'runtime/package-lock.json', 'examples/generated-client/package-lock.json']

type Lock = {
  packages: Record<
    string,
    { engines?: { node?: string }; link?: boolean; inBundle?: boolean; resolved?: string; integrity?: string }
  >
}
type Semver = { satisfies: (version: string, range: string) => boolean }

test('npm ci prints no warning on the oldest Node that we support: every package accepts it', () => {
  const lock = readLock('package-lock.json')
  const semver = semverOfNpm()
  const packages = Object.entries(lock.packages)
  assert.ok(packages.length > 100, `${packages.length} packages`)
  const refused = packages.flatMap(([path, { engines }]) =>
    engines?.node === undefined || semver.satisfies(OLDEST_NODE, engines.node) ? [] : [`${path}: ${engines.node}`],
  )
  assert.deepEqual(refused, [])
})

test('npm ci asks the registry only for archives: every lock names their addresses and hashes, for every system', () => {
  for (const path of LOCKS) {
    const installed = Object.entries(readLock(path).packages).filter(([name]) => name.includes('node_modules/'))
    assert.ok(installed.length > 0, path)
    const nameless = installed.filter(
      ([, { resolved = '', integrity, link, inBundle }]) =>
        !link && !inBundle && (!resolved.startsWith(REGISTRY) || integrity === undefined),
    )
    assert.deepEqual(
      nameless.map(([name]) => name),
      [],
      `${path}: .npmrc beside it sets omit-lockfile-registry-resolved=false`,
    )
  }
})

function readLock(path: string): Lock {
  return JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')) as Lock
}

/** npm decides with its own copy of semver, so the test does too. */
function semverOfNpm(): Semver {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'))
  const env = { ...process.env, PATH: folders.join(delimiter) }
  const root = execFileSync('npm', ['root', '--global'], { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'] })
  return createRequire(join(root.trim(), 'npm', 'package.json'))('semver') as Semver
}
