// Container images that a version config names by their digest in a registry.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { checkImage } from '../../src/objects/container-image/image.ts'
import { pullImage, type Registries } from '../../src/runner/registry/pull-image.ts'
import { lacking } from '../run/optional-programs.ts'
import { buildahImage, busyboxRoot, IMAGE_TOOLS, makeFolder, umociImage } from '../support/container-images.ts'
import { type Registry, startRegistry } from '../support/registry.ts'
import { until } from '../support/until.ts'
import { BASE_IMAGE } from './base-image.ts'
import { needsOf, sharedEngine, swarmSettings } from './driver-fixture.ts'
import { openRunner } from './runner-fixture.ts'

const OPTIONS = { entrypoint: ['/bin/sh', '-c', 'exec /bin/busybox httpd -f -h /srv -p "$PORT"'], user: '1234:56' }
const DIGEST = `sha256:${'0'.repeat(64)}`
const PORTS = { game: { protocol: 'http' } } as const

const NEEDS = [...IMAGE_TOOLS, 'docker-registry', 'skopeo'] as const

function imageFile(folder: string): string {
  return `docker-archive:${buildahImage(folder, [busyboxRoot(folder, { 'srv/index.html': 'played' })], OPTIONS, 'docker-archive')}`
}

const rulesOf = ({ host }: Registry, registry_auth_file: string | null = null): Registries => ({
  registries: [{ host, prefix: 'games', origin: `http://${host}` }],
  registry_auth_file,
})

async function played(t: TestContext, env: Record<string, string>, sandbox: 'available' | 'off'): Promise<void> {
  const folder = makeFolder(t)
  const registry = await startRegistry(t, join(folder, 'registry'))
  const name = registry.push(imageFile(folder), 'games/hello')
  const fixture = await openRunner(t, sandbox, { ...env, MUSTER_REGISTRIES: `http://${registry.host}/games` })
  await fixture.start()
  const version_id = await fixture.versionOf({ image: name, ports: PORTS })
  for (const _ of [1, 2]) {
    const lobby_id = await fixture.lobby(version_id)
    const started = await fixture.run(lobby_id, 'the run starts', ({ start_ts }) => start_ts !== null)
    const { hostname = '', port = 0 } = started.ports.game ?? {}
    const ask = () =>
      fetch(`http://${hostname}:${port}/index.html`).then(
        (response) => response.text(),
        () => null,
      )
    assert.equal(await until('the server responds', ask), 'played')
    // The second lobby needs no registry.
    registry.stop()
  }
  const absent = name.replace(/sha256:.*/, DIGEST)
  const lobby_id = await fixture.lobby(await fixture.versionOf({ image: absent, ports: PORTS }))
  const ended = await fixture.run(lobby_id, 'the run ends', ({ exit_ts }) => exit_ts !== null)
  assert.deepEqual([ended.exit_reason, ended.start_ts], ['no_build', null])
  assert.match((await fixture.log(lobby_id, 'stderr')).join('\n'), /The registry 127\.0\.0\.1:\d+ does not respond/)
}

test('an image of a registry is pulled once by its digest and played in a container', async (t) => {
  const missing = lacking(...NEEDS, ...needsOf('docker'))
  if (missing !== null) return t.skip(missing)
  const { socket } = await sharedEngine('docker')
  const env = { MUSTER_DRIVER: 'docker', MUSTER_DOCKER_SOCKET: socket, MUSTER_DOCKER_BASE_IMAGE: BASE_IMAGE }
  await played(t, env, 'off')
})

test('an image of a registry is pulled once by its digest and played in a Swarm', async (t) => {
  const missing = lacking(...NEEDS, ...needsOf('swarm'))
  if (missing !== null) return t.skip(missing)
  await played(t, await swarmSettings(), 'off')
})

test('an image of a registry is pulled once by its digest and played in bubblewrap', async (t) => {
  const missing = lacking(...NEEDS, 'bwrap')
  if (missing !== null) return t.skip(missing)
  await played(t, {}, 'available')
})

test('what a registry does not have, and what the operator does not allow, is refused with a remedy', async (t) => {
  const missing = lacking(...NEEDS)
  if (missing !== null) return t.skip(missing)
  const folder = makeFolder(t)
  const registry = await startRegistry(t, join(folder, 'registry'), 'secret')
  const file = imageFile(folder)
  const [name, foreign] = [registry.push(file, 'games/hello'), registry.push(file, 'other/hello')]
  const auth_file = join(folder, 'config.json')
  const auth = Buffer.from('player:secret').toString('base64')
  writeFileSync(auth_file, JSON.stringify({ auths: { [registry.host]: { auth } } }))
  const path = join(folder, 'pulled.tar')
  const closing = new AbortController().signal
  const pull = (image: string, rules = rulesOf(registry, auth_file)) => pullImage(rules, image, path, closing)

  await pull(name)
  assert.equal((await checkImage(path, 'oci_bundle', folder)).uid, 1234)
  await assert.rejects(
    pull(name.replace(/sha256:.*/, DIGEST)),
    /has no games\/hello@sha256:0+\. Correct the name or the digest/,
  )
  await assert.rejects(pull(foreign), /does not allow images of .*\/other\/hello\. Its operator sets MUSTER_REGISTRIES/)
  await assert.rejects(pull(`${registry.host}/games/hello:1`), /names the tag 1, which may change\. Write its digest/)
  await assert.rejects(pull(name, rulesOf(registry)), /refuses access .*\(status 401\).* MUSTER_REGISTRY_AUTH/)
  await assert.rejects(pull(name, rulesOf(registry, join(folder, 'none'))), /MUSTER_REGISTRY_AUTH cannot be read/)
  assert.equal(existsSync(path), false)
})

test('other bytes, too many bytes and a registry that does not end are refused', async (t) => {
  const folder = makeFolder(t)
  const manifest = (size: number, layer: string): string =>
    JSON.stringify({
      schemaVersion: 2,
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: DIGEST, size: 2 },
      layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: layer, size }],
    })
  const texts = new Map<string, string>()
  const nameOf = (text: string): string => {
    const digest = `sha256:${hash('sha256', text)}`
    texts.set(digest, text)
    return digest
  }
  const server = createServer((request, response) => {
    const digest = request.url!.split('/').at(-1)!
    response.setHeader('Content-Type', 'application/vnd.oci.image.manifest.v1+json')
    if (request.url!.includes('/manifests/')) response.end(texts.get(digest) ?? 'other')
    else if (request.url!.includes('/slow/')) response.write('{')
    else response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const host = `127.0.0.1:${(server.address() as { port: number }).port}`
  const rules: Registries = { registries: [{ host, prefix: '', origin: `http://${host}` }], registry_auth_file: null }
  const closing = new AbortController()
  const pull = (image: string, ms_max?: number) =>
    pullImage(rules, `${host}/${image}`, join(folder, 'pulled.tar'), closing.signal, ms_max)
  await assert.rejects(pull(`a@${DIGEST}`), /sent other bytes than sha256:0+ names/)
  await assert.rejects(pull(`a@${nameOf(manifest(2, DIGEST))}`), /sent other bytes than sha256:0+ names/)
  await assert.rejects(pull(`a@${nameOf(manifest(9e9, DIGEST))}`), /has 9000000002 bytes, and an image has at most/)
  await assert.rejects(pull(`slow/a@${nameOf(manifest(2, DIGEST))}`, 200), /was not pulled within 0\.2 s/)
  assert.deepEqual(readdirSync(folder), [])
})

test('of an image for several platforms, that of this machine is pulled', async (t) => {
  const missing = lacking(...NEEDS)
  if (missing !== null) return t.skip(missing)
  const folder = makeFolder(t)
  const registry = await startRegistry(t, join(folder, 'registry'))
  const name = registry.push(`oci-archive:${umociImage(folder, [busyboxRoot(folder)], OPTIONS)}`, 'games/one')
  const { media_type, size, digest } = await registry.describe(name)
  const descriptorOf = (architecture: string, of: string) => ({
    ...{ mediaType: media_type, size, digest: of, platform: { os: 'linux', architecture } },
  })
  const ours = process.arch === 'x64' ? 'amd64' : process.arch
  const index = { schemaVersion: 2, manifests: [descriptorOf('s390x', digest), descriptorOf(ours, digest)] }
  const several = await registry.putIndex('games/one', index)
  const path = join(folder, 'pulled.tar')
  await pullImage(rulesOf(registry), several, path, new AbortController().signal)
  assert.equal((await checkImage(path, 'oci_bundle', folder)).gid, 56)
})
