// An npm registry on loopback with the packages that this checkout has installed, so that a test can install without the
// network. A package is sent as a tar of its folder in node_modules.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, readFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

type Lock = { packages: Record<string, { version?: string; link?: boolean; optional?: boolean }> }
type Manifest = { name: string; version: string; scripts?: Record<string, string> }
/** The folder of each version of each package. */
type Folders = Map<string, Map<string, string>>

const MODULES = 'node_modules/'

/** Resolves to its address. `packed`: files that npm packed, which it has too. */
export async function startRegistry(t: TestContext, root: string, packed: readonly string[] = []): Promise<string> {
  const folders = listFolders(root)
  const files = new Map(packed.map((file) => [readPackedManifest(file).name, file]))
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? '').slice(1))
    const [name = '', version] = path.split('/-/')
    const file = files.get(name)
    if (file !== undefined) {
      if (version === undefined) sendPacked(response, file, addressOf(server))
      else createReadStream(file).pipe(response)
      return
    }
    const versions = folders.get(name)
    if (versions === undefined) response.writeHead(404).end('{}')
    else if (version === undefined) sendVersions(response, { name, versions, url: addressOf(server) })
    else sendTar(response, versions.get(version.replace(/\.tgz$/, '')))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return addressOf(server)
}

function sendPacked(response: ServerResponse, file: string, url: string): void {
  const manifest = readPackedManifest(file)
  const { name, version } = manifest
  const dist = { tarball: `${url}/${name}/-/${version}.tgz` }
  response.setHeader('content-type', 'application/json')
  response.end(
    JSON.stringify({ name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } } }),
  )
}

function readPackedManifest(file: string): Manifest {
  const args = ['--extract', '--gzip', '--to-stdout', '--file', file, 'package/package.json']
  return JSON.parse(execFileSync('tar', args, { encoding: 'utf8' })) as Manifest
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Packages of the lock file. Those for other systems are named but were not installed, so they are left out. */
function listFolders(root: string): Folders {
  const folders: Folders = new Map()
  // The Node of the platform is installed apart.
  for (const place of [root, join(root, 'runtime')]) addFolders(folders, place)
  return folders
}

function addFolders(folders: Folders, root: string): void {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  for (const [path, { version, link, optional }] of Object.entries(packages)) {
    const name = path.slice(path.lastIndexOf(MODULES) + MODULES.length)
    if (!path.includes(MODULES) || version === undefined || link) continue
    if (optional && readManifest(join(root, path)) === null) continue
    const versions = folders.get(name) ?? new Map<string, string>()
    folders.set(name, versions.set(version, join(root, path)))
  }
}

function sendVersions(
  response: ServerResponse,
  { name, versions, url }: { name: string; versions: ReadonlyMap<string, string>; url: string },
): void {
  const entries = [...versions].map(([version, folder]) => {
    const manifest = readManifest(folder)
    if (manifest === null) throw new Error(`${name} ${version} is in the lock file and not installed.`)
    const hasInstallScript = ['preinstall', 'install', 'postinstall'].some((script) => manifest.scripts?.[script])
    const dist = { tarball: `${url}/${name}/-/${version}.tgz` }
    return [version, { ...manifest, hasInstallScript, dist }] as const
  })
  const latest = entries.at(-1)?.[0]
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ name, 'dist-tags': { latest }, versions: Object.fromEntries(entries) }))
}

/** A plain tar: npm reads it like a compressed one. Packages inside the folder are packages of their own. */
function sendTar(response: ServerResponse, folder: string | undefined): void {
  if (folder === undefined) return void response.writeHead(404).end()
  const args = ['--create', '--exclude=./node_modules', '--transform=s,^\\.,package,', '--directory', folder, '.']
  const tar = spawn('tar', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  tar.stdout.pipe(response)
  tar.once('close', (code) => code !== 0 && response.destroy())
}

function readManifest(folder: string): Manifest | null {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
