// A registry of container images: Debian's docker-registry on a free port of this machine, in a folder of the test.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePorts } from './free-ports.ts'
import { outputOf } from './programs.ts'
import { until } from './until.ts'

const TOOL_MS_MAX = 120_000

const MANIFESTS = 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json'

export type Registry = {
  /** With its port. */
  host: string
  /** Copies an image file (`docker-archive:` or `oci-archive:`) to a name, and returns HOST/NAME@sha256:DIGEST. */
  push: (file: string, name: string) => string
  /** Its manifest. */
  describe: (image: string) => Promise<{ media_type: string; size: number; digest: string }>
  /** Adds an index, and returns its name. */
  putIndex: (name: string, index: object) => Promise<string>
  stop: () => void
}

/** `password`: of the user `player`, who alone may read and write. */
export async function startRegistry(t: TestContext, folder: string, password: string | null = null): Promise<Registry> {
  mkdirSync(folder, { recursive: true })
  const [port] = await freePorts(1)
  const host = `127.0.0.1:${port}`
  const auth = password === null ? '' : `auth:\n  htpasswd: { realm: test, path: ${folder}/htpasswd }\n`
  if (password !== null) {
    const script = 'import crypt, sys; print("player:" + crypt.crypt(sys.argv[1], crypt.mksalt(crypt.METHOD_BLOWFISH)))'
    writeFileSync(join(folder, 'htpasswd'), execFileSync('python3', ['-W', 'ignore', '-c', script, password]))
  }
  const config = `version: 0.1\nstorage: { filesystem: { rootdirectory: ${folder}/data } }\nhttp: { addr: "${host}" }\n${auth}`
  writeFileSync(join(folder, 'config.yml'), config)
  const child = spawn('docker-registry', ['serve', join(folder, 'config.yml')], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = outputOf(child)
  const ended = once(child, 'close')
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
  })
  await until('the registry responds', () => {
    if (child.exitCode !== null) throw new Error(`docker-registry ended:\n${output()}`)
    return fetch(`http://${host}/v2/`).then(
      () => true,
      () => false,
    )
  })
  const credentials = password === null ? [] : ['--dest-creds', `player:${password}`]
  return {
    host,
    stop: () => void child.kill('SIGTERM'),
    async describe(image) {
      const [name, digest = ''] = image.slice(host.length + 1).split('@')
      const response = await fetch(`http://${host}/v2/${name}/manifests/${digest}`, { headers: { Accept: MANIFESTS } })
      const media_type = response.headers.get('content-type') ?? ''
      return { media_type, size: (await response.bytes()).length, digest }
    },
    async putIndex(name, index) {
      const headers = { 'Content-Type': 'application/vnd.oci.image.index.v1+json' }
      const body = JSON.stringify({ mediaType: headers['Content-Type'], ...index })
      const response = await fetch(`http://${host}/v2/${name}/manifests/all`, { method: 'PUT', headers, body })
      if (!response.ok) throw new Error(await response.text())
      return `${host}/${name}@${response.headers.get('docker-content-digest')}`
    },
    push(file, name) {
      const digest_file = join(folder, 'digest')
      const insecure = ['--insecure-policy', 'copy', '--dest-tls-verify=false', '--digestfile', digest_file]
      execFileSync('skopeo', [...insecure, ...credentials, '--quiet', file, `docker://${host}/${name}:1`], {
        timeout: TOOL_MS_MAX,
        stdio: 'pipe',
      })
      return `${host}/${name}@${execFileSync('cat', [digest_file], { encoding: 'utf8' }).trim()}`
    },
  }
}
