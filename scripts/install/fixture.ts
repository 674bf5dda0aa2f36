// A small checkout for the tests of the install step: its lock names a workspace and two packages, which a registry on
// loopback serves. npm itself is real.
import { execFileSync, type SpawnSyncReturns, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { TestContext } from 'node:test'

const STEP = 'scripts/install'
/** The files of the step. */
const STEP_FILES = ['main.cjs', 'install.js', 'differences.js', 'npm.js', 'lock.js'] as const
export const NODE_PACKAGE = `node-linux-${process.arch}`
const VERSION = '1.0.0'

export type Registry = {
  url: string
  /** The names of the archives that were asked for, in order. */
  asked: string[]
  /** While it is set, archives wait for it. */
  hold: Promise<void> | null
}

export type Checkout = {
  root: string
  registry: Registry
  /** npm's settings for the registry, and a cache of its own. */
  env: NodeJS.ProcessEnv
}

export type Ended = Pick<SpawnSyncReturns<string>, 'status' | 'stderr'>

/** `parent`: the folder that the checkout is made in. */
export async function makeCheckout(t: TestContext, parent: string = newFolder(t)): Promise<Checkout> {
  const root = join(parent, 'checkout')
  const archives = new Map([
    ['one', archiveOf(t, 'one', { 'index.js': '' })],
    ['two', archiveOf(t, 'two', { 'index.js': '' })],
    // The test runs under a Node that is new enough, and says through it that it is another.
    [
      NODE_PACKAGE,
      archiveOf(t, NODE_PACKAGE, { 'bin/node': `#!/bin/sh\nexec "${process.execPath}" "$@"\n`, 'include/node.h': '' }),
    ],
  ])
  const registry = await startRegistry(t, archives)
  for (const folder of [STEP, 'part']) mkdirSync(join(root, folder), { recursive: true })
  for (const name of STEP_FILES) cpSync(join(import.meta.dirname, name), join(root, STEP, name))
  const part = { name: 'part', version: VERSION }
  writeJson(root, 'part/package.json', part)
  writeProject(root, registry.url, archives, { name: 'checkout', workspaces: ['part'], dependencies: ['one', 'two'] })
  const lock = readJson(root, 'package-lock.json') as { packages: Record<string, object> }
  Object.assign(lock.packages, { part, 'node_modules/part': { resolved: 'part', link: true } })
  writeJson(root, 'package-lock.json', lock)
  writeProject(join(root, 'runtime'), registry.url, archives, { name: 'runtime', dependencies: [NODE_PACKAGE] })
  const env = {
    PATH: pathWithoutModules(),
    HOME: root,
    npm_config_registry: `${registry.url}/`,
    npm_config_cache: join(newFolder(t), 'cache'),
  }
  return { root, registry, env }
}

/** Runs the step as a script of npm does, under the Node of this test. */
export async function runStep({ root, env }: Checkout, options: readonly string[] = []): Promise<Ended> {
  const child = startStep({ root, env }, options)
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, stderr }
}

/** In a process group of its own, so that a test can kill all of it. */
export function startStep({ root, env }: Pick<Checkout, 'root' | 'env'>, options: readonly string[] = []) {
  const program = join(root, STEP, 'main.cjs')
  return spawn(process.execPath, [...options, program], { env, detached: true, stdio: ['ignore', 'inherit', 'pipe'] })
}

export function readJson(root: string, path: string): unknown {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}

export function writeJson(root: string, path: string, value: unknown): void {
  writeFileSync(join(root, path), `${JSON.stringify(value, null, 2)}\n`)
}

export function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-install-'))
  // A Node in it counts as one that other users may run.
  chmodSync(folder, 0o755)
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** npm is the machine's. */
function pathWithoutModules(): string {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter)
}

function writeProject(
  root: string,
  url: string,
  archives: ReadonlyMap<string, Buffer>,
  { name, workspaces, dependencies }: { name: string; workspaces?: string[]; dependencies: readonly string[] },
): void {
  mkdirSync(root, { recursive: true })
  const own = {
    name,
    version: VERSION,
    type: 'module',
    workspaces,
    dependencies: Object.fromEntries(dependencies.map((key) => [key, VERSION])),
  }
  const entries = dependencies.map((key) => {
    const integrity = `sha512-${createHash('sha512').update(archives.get(key)!).digest('base64')}`
    return [`node_modules/${key}`, { version: VERSION, resolved: `${url}/${key}/-/${key}-${VERSION}.tgz`, integrity }]
  })
  writeJson(root, 'package.json', own)
  const packages = { '': own, ...Object.fromEntries(entries) }
  writeJson(root, 'package-lock.json', { name, version: VERSION, lockfileVersion: 3, requires: true, packages })
}

function archiveOf(t: TestContext, name: string, files: Record<string, string>): Buffer {
  const folder = newFolder(t)
  for (const [path, text] of Object.entries({ 'package.json': JSON.stringify({ name, version: VERSION }), ...files })) {
    const file = join(folder, 'package', path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, text, { mode: 0o755 })
  }
  return execFileSync('tar', ['-cz', '-C', folder, 'package'])
}

async function startRegistry(t: TestContext, archives: ReadonlyMap<string, Buffer>): Promise<Registry> {
  const registry: Registry = { url: '', asked: [], hold: null }
  const server = createServer(async (request, response) => {
    const [, name = '', path] = /^\/([^/]+)(\/-\/)?/.exec(request.url ?? '') ?? []
    if (path === undefined) return void response.end(JSON.stringify(documentOf(name, registry.url)))
    const archive = archives.get(name)
    registry.asked.push(name)
    await registry.hold
    if (archive === undefined) response.writeHead(404).end('{}')
    else response.end(archive)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  registry.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return registry
}

/** npm asks for it when a manifest wants what the lock does not name. */
function documentOf(name: string, url: string): object {
  const version = '2.0.0'
  const dist = { tarball: `${url}/${name}/-/${name}-${version}.tgz` }
  return { name, 'dist-tags': { latest: version }, versions: { [version]: { name, version, dist } } }
}
