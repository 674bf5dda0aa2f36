// The registry of the platform, from which engines pull images of lobbies.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Credential, ImageServer } from '../../src/runner/registry/image-server.ts'
import { ServedImages } from '../../src/runner/registry/served-images.ts'

const LAYER = Buffer.from('the tar of a layer')
const SETTINGS = { architecture: 'amd64', os: 'linux', created: '2026-01-01T00:00:00Z', config: {} }

type Served = { images: ServedImages; server: ImageServer; ask: (path: string, options?: Asked) => Promise<Response> }
type Asked = { method?: string; credential?: Credential; headers?: Record<string, string> }

async function serve(t: TestContext): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-images-'))
  const images = await ServedImages.open(folder, Date.now)
  const server = await ImageServer.open(images, { host: '127.0.0.1', port: 0, tls: null })
  t.after(async () => {
    await server.close()
    rmSync(folder, { recursive: true })
  })
  return {
    images,
    server,
    ask(path, { method = 'GET', credential, headers = {} } = {}) {
      const text = credential && Buffer.from(`${credential.username}:${credential.password}`).toString('base64')
      const all = { ...headers, ...(text && { Authorization: `Basic ${text}` }) }
      return fetch(`http://127.0.0.1:${server.port}${path}`, { method, headers: all })
    },
  }
}

test('an image is served by its digests to the node whose lobby needs it, and to no other', async (t) => {
  const { images, server, ask } = await serve(t)
  const layer = await images.store((onBytes) => onBytes(LAYER))
  const image = await images.add('one', SETTINGS, [layer])
  await images.add('two', SETTINGS, [await images.store((onBytes) => onBytes(Buffer.from('another')))])
  const credential = server.credentialFor('attic', 'one')
  const manifest_path = `/v2/one/manifests/sha256:${image.manifest}`

  const asked = await ask('/v2/')
  assert.deepEqual([asked.status, asked.headers.get('www-authenticate')], [401, 'Basic realm="muster"'])
  assert.equal((await ask('/v2/', { credential })).status, 200)
  const manifest = await ask(manifest_path, { credential })
  assert.equal(manifest.headers.get('docker-content-digest'), `sha256:${image.manifest}`)
  const bytes = await manifest.bytes()
  assert.equal(hash('sha256', bytes), image.manifest)
  type Part = { digest: string; size: number }
  const { config, layers } = JSON.parse(Buffer.from(bytes).toString()) as { config: Part; layers: Part[] }
  for (const { digest, size } of [config, ...layers]) {
    const blob = await (await ask(`/v2/one/blobs/${digest}`, { credential })).bytes()
    assert.deepEqual([`sha256:${hash('sha256', blob)}`, blob.length], [digest, size])
  }
  const head = await ask(`/v2/one/blobs/sha256:${layer.hex}`, { method: 'HEAD', credential })
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(LAYER.length)])
  const rest = await ask(`/v2/one/blobs/sha256:${layer.hex}`, { credential, headers: { Range: 'bytes=4-' } })
  assert.deepEqual(
    [rest.status, rest.headers.get('content-range'), await rest.text()],
    [206, `bytes 4-${LAYER.length - 1}/${LAYER.length}`, LAYER.subarray(4).toString()],
  )

  for (const [path, options, status] of [
    [manifest_path, {}, 401],
    [manifest_path, { credential: { ...credential, username: 'cellar' } }, 401],
    [manifest_path, { credential: { ...credential, password: `${credential.password}x` } }, 401],
    [manifest_path, { credential: server.credentialFor('attic', 'two') }, 401],
    [`/v2/two/blobs/sha256:${layer.hex}`, { credential: server.credentialFor('attic', 'two') }, 404],
    [`/v2/one/manifests/sha256:${layer.hex}`, { credential }, 404],
    ['/v2/one/manifests/latest', { credential }, 404],
    [`/v2/none/manifests/sha256:${layer.hex}`, { credential: server.credentialFor('attic', 'none') }, 404],
    ['/v2/one/tags/list', { credential }, 404],
    ['/v2/_catalog', { credential }, 404],
    ['/v2/one/blobs/uploads/', { method: 'POST', credential }, 405],
    [`/v2/one/blobs/sha256:${layer.hex}`, { credential, headers: { Range: 'bytes=99-' } }, 416],
  ] as const) {
    assert.equal((await ask(path, options)).status, status, `${path} ${JSON.stringify(options)}`)
  }
})

test('a removed image and its blobs are gone after an hour, and what others use stays', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-images-'))
  t.after(() => rmSync(folder, { recursive: true }))
  let now_ms = Date.now()
  const images = await ServedImages.open(folder, () => now_ms)
  const shared = await images.store((onBytes) => onBytes(LAYER))
  const own = await images.store((onBytes) => onBytes(Buffer.from('own')))
  await images.add('kept', SETTINGS, [shared])
  await images.add('removed', SETTINGS, [shared, own])
  await images.remove('removed')
  await images.sweep()
  assert.notEqual(await images.blob(own.hex), null)
  now_ms += 2 * 3_600_000
  await images.sweep()
  assert.deepEqual([await images.blob(own.hex), (await images.blob(shared.hex))?.size], [null, LAYER.length])

  const again = await ServedImages.open(folder, () => now_ms)
  assert.deepEqual([again.names(), again.find('kept')], [['kept'], images.find('kept')])
  const broken = again.store(() => Promise.reject(new Error('the upload ended')))
  await assert.rejects(broken, /the upload ended/)
})
