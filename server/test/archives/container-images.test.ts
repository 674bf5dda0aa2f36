import assert from 'node:assert'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { ApiError } from '@musterhost/contract'
import { checkImage, type ImageLimits } from '../../src/objects/container-image/image.ts'
import type { ImageKind } from '../../src/objects/container-image/manifest.ts'
import { lacking } from '../run/optional-programs.ts'
import {
  buildahImage,
  busyboxRoot,
  compressFile,
  forgedImage,
  IMAGE_TOOLS,
  makeFolder,
  umociImage,
  writeImage,
} from '../support/container-images.ts'
import { type TarItem, tarOf } from './forgery.ts'

const SERVER: TarItem = { name: 'server', mode: 0o755, body: Buffer.from('#!/bin/sh\n') }

async function refusalOf(
  t: TestContext,
  bytes: Buffer,
  kind: ImageKind = 'oci_bundle',
  limits: Partial<ImageLimits> = {},
): Promise<{ reason: unknown; layer_number: unknown; entry: unknown; message: string }> {
  const folder = makeFolder(t)
  try {
    const start = await checkImage(writeImage(folder, bytes), kind, folder, { limits })
    assert.fail(`accepted: ${JSON.stringify(start)}`)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    assert.equal(error.code, 'ARCHIVE_INVALID')
    assert.deepEqual(await readdir(folder), ['forged.tar'])
    const { reason, layer_number, entry } = error.metadata
    return { reason, layer_number, entry, message: error.message }
  }
}

const OPTIONS = {
  entrypoint: ['/bin/sh'],
  env: { GREETING: 'hello there' },
  user: 'player:games',
  working_folder: '/srv/game',
  stop_signal: 'SIGUSR1',
}
const USERS = { 'etc/passwd': 'root:x:0:0::/:\nplayer:x:1234:56::/:\n', 'etc/group': 'games:x:77:\n' }
const START = {
  entrypoint: ['/bin/sh'],
  cmd: [],
  working_folder: '/srv/game',
  stop_signal: 'SIGUSR1',
  uid: 1234,
  gid: 77,
}

test('images of buildah and umoci are accepted, plain, gzip and zstd, with the user of their /etc/passwd', async (t) => {
  const missing = lacking(...IMAGE_TOOLS, 'zstd')
  if (missing !== null) return t.skip(missing)
  const folder = makeFolder(t)
  const roots = [busyboxRoot(folder, USERS)]
  const made: [string, ImageKind][] = [
    [buildahImage(folder, roots, OPTIONS, 'docker-archive'), 'docker_image'],
    [buildahImage(folder, roots, OPTIONS, 'oci-archive'), 'oci_bundle'],
    [umociImage(folder, roots, OPTIONS), 'oci_bundle'],
  ]
  for (const [path, kind] of made) {
    for (const file of [path, compressFile(path, 'gzip'), compressFile(path, 'zstd')]) {
      const files: string[] = []
      const { env, ...start } = await checkImage(file, kind, folder, { onFile: ({ path }) => files.push(path) })
      assert.deepEqual(start, START, file)
      assert.equal(env.GREETING, 'hello there')
      assert.ok(files.includes('bin/busybox'))
    }
  }
})

test('layers may be plain, gzip or zstd, and the docker form may hold links', async (t) => {
  const layer = tarOf(SERVER)
  for (const stored of [layer, gzipSync(layer), zstdCompressSync(layer)]) {
    const folder = makeFolder(t)
    const plain = forgedImage([layer])
    const bytes = stored === layer ? plain : forgedImage([stored], { diff_ids: idsOf(layer) })
    const start = await checkImage(writeImage(folder, bytes), 'oci_bundle', folder)
    assert.deepEqual(start.entrypoint, ['/server'])
  }
  const folder = makeFolder(t)
  const start = await checkImage(writeImage(folder, dockerImage(layer)), 'docker_image', folder)
  assert.deepEqual(start.cmd, ['/server'])
})

function idsOf(...layers: Buffer[]): string[] {
  const config = JSON.parse(/\{"architecture".*?\]\}\}/.exec(forgedImage(layers).toString('latin1'))![0])
  return config.rootfs.diff_ids
}

/** The layout of old releases of docker save: the layer twice, once as a link. */
function dockerImage(layer: Buffer, names = ['a/layer.tar', 'b/layer.tar']): Buffer {
  const [diff_id] = idsOf(layer)
  const config = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Cmd: ['/server'] },
    rootfs: { type: 'layers', diff_ids: names.map(() => diff_id) },
  }
  return tarOf(
    { name: 'a/layer.tar', body: layer },
    { name: 'b/layer.tar', type: '2', link: '../a/layer.tar' },
    { name: 'config.json', body: Buffer.from(JSON.stringify(config)) },
    { name: 'manifest.json', body: Buffer.from(JSON.stringify([{ Config: 'config.json', Layers: names }])) },
  )
}

const HOSTILE: [string, TarItem[], string][] = [
  ['a path with ..', [SERVER, { name: '../evil' }], 'dots'],
  ['a path with .. inside', [SERVER, { name: 'a/../../evil' }], 'dots'],
  ['an absolute path', [SERVER, { name: '/etc/passwd' }], 'absolute'],
  ['a file through a link', [SERVER, { name: 'out', type: '2', link: '/etc' }, { name: 'out/passwd' }], 'not_a_folder'],
  ['a whiteout of the parent', [SERVER, { name: 'a/.wh...' }], 'whiteout'],
  ['a whiteout of the folder', [SERVER, { name: 'a/.wh..' }], 'whiteout'],
  ['a whiteout above the root', [SERVER, { name: '../.wh.etc' }], 'dots'],
  ['a whiteout of nothing', [SERVER, { name: 'a/.wh.' }], 'whiteout'],
  ['a hard link to a file of the machine', [SERVER, { name: 'p', type: '1', link: '/etc/passwd' }], 'hard_link'],
  ['a hard link out of the image', [SERVER, { name: 'p', type: '1', link: '../../etc/passwd' }], 'dots'],
  [
    'a hard link to a link',
    [SERVER, { name: 's', type: '2', link: '/etc/passwd' }, { name: 'p', type: '1', link: 's' }],
    'hard_link',
  ],
  ['a hard link to a later file', [{ name: 'p', type: '1', link: 'server' }, SERVER], 'hard_link'],
  ['a character device', [SERVER, { name: 'dev/mem', type: '3' }], 'image_device'],
  ['a block device', [SERVER, { name: 'disk', type: '4' }], 'image_device'],
  ['a pipe', [SERVER, { name: 'pipe', type: '6' }], 'fifo'],
  ['a file twice', [SERVER, SERVER], 'duplicate'],
  ['a control character', [SERVER, { name: 'a\nb' }], 'control_character'],
  ['an empty name', [SERVER, { name: 'a//b' }], 'empty_name'],
  ['a link without a target', [SERVER, { name: 'a', type: '2' }], 'link_target'],
  ['a link with data', [SERVER, { name: 'a', type: '2', link: 'b', body: Buffer.alloc(5) }], 'size_mismatch'],
  ['a path that is too deep', [SERVER, { name: 'a/'.repeat(49), prefix: 'b/'.repeat(40), type: '5' }], 'path_too_deep'],
]

for (const [what, items, reason] of HOSTILE) {
  test(`${what} in a layer is refused, with the layer and the path`, async (t) => {
    const refusal = await refusalOf(t, forgedImage([tarOf(SERVER), tarOf(...items)]))
    assert.equal(refusal.reason, reason)
    assert.equal(refusal.layer_number, 2)
    assert.match(refusal.message, /^Layer 2 \(blobs\/sha256\/[0-9a-f]{64}\): "/)
  })
}

test('every digest, size and count of an image is checked', async (t) => {
  const layer = tarOf(SERVER)
  const other = tarOf({ ...SERVER, name: 'other' })
  const [id] = idsOf(layer)
  const name = id!.slice('sha256:'.length)
  const descriptor = { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: id, size: layer.length }
  const reasonOf = async (forgery: Parameters<typeof forgedImage>[1], layers = [layer]): Promise<unknown> =>
    (await refusalOf(t, forgedImage(layers, forgery))).reason
  assert.equal(await reasonOf({ change: (blobs) => blobs.set(name, other) }), 'digest')
  assert.equal(await reasonOf({ change: (blobs) => blobs.delete(name) }), 'missing_blob')
  assert.equal(await reasonOf({ change: (blobs) => blobs.set(name, Buffer.alloc(1)) }), 'size')
  assert.equal(await reasonOf({ diff_ids: idsOf(other) }), 'digest')
  assert.equal(await reasonOf({ diff_ids: [] }), 'layer_count')
  assert.equal(await reasonOf({}, []), 'no_layers')
  assert.equal(await reasonOf({ config: { architecture: 's390x' } }), 'platform')
  assert.equal(await reasonOf({ config: { os: 'windows' } }), 'platform')
  const { message } = await refusalOf(t, forgedImage([tarOf(SERVER)], { config: { architecture: 's390x' } }))
  assert.match(message, /It has linux\/s390x only; this machine is (linux\/\w+): build with --platform \1\.$/)
  assert.equal(
    await reasonOf({ manifest: { layers: Array.from({ length: 2_000 }, () => descriptor) } }),
    'too_many_layers',
  )
  const foreign = { ...descriptor, mediaType: 'application/vnd.oci.image.layer.nondistributable.v1.tar' }
  assert.equal(await reasonOf({ manifest: { layers: [foreign] } }), 'media_type')
  assert.equal(
    await reasonOf({ manifest: { layers: [{ ...descriptor, digest: `sha512:${'0'.repeat(128)}` }] } }),
    'digest_algorithm',
  )
  assert.equal(
    await reasonOf({ manifest: { layers: [{ ...descriptor, digest: 'sha256:../../index.json' }] } }),
    'digest_algorithm',
  )
  assert.equal(await reasonOf({ config: { config: { User: 'nobody' } } }), 'user')
  assert.equal(await reasonOf({ config: { config: { User: '70000' } } }), 'user_too_high')
  assert.equal(await reasonOf({ config: { config: { User: '0:700000' } } }), 'user_too_high')
  assert.equal(await reasonOf({ config: { config: { User: '99999999' } } }), 'user_too_high')
  assert.equal(await reasonOf({ config: { config: { WorkingDir: '../etc' } } }), 'working_folder')
  assert.equal(await reasonOf({ config: { config: { StopSignal: 'SIGKILL' } } }), 'stop_signal')
  assert.equal(await reasonOf({ config: { config: { Env: ['=x'] } } }), 'environment')
  assert.equal(await reasonOf({ config: { config: { Entrypoint: ['a\0b'] } } }), 'command')
})

test('a file that is no image of its kind is refused with the remedy', async (t) => {
  assert.equal((await refusalOf(t, tarOf(SERVER), 'docker_image')).reason, 'no_manifest')
  assert.equal((await refusalOf(t, dockerImage(tarOf(SERVER)))).reason, 'no_index')
  assert.equal((await refusalOf(t, Buffer.alloc(2_000, 'x'))).reason, 'compression')
  assert.equal((await refusalOf(t, tarOf({ name: '../index.json' }))).reason, 'dots')
  assert.equal((await refusalOf(t, tarOf({ name: 'index.json', body: Buffer.from('{') }))).reason, 'not_json')
  const loop = tarOf(
    { name: 'manifest.json', type: '2', link: 'again.json' },
    { name: 'again.json', type: '2', link: 'manifest.json' },
  )
  assert.equal((await refusalOf(t, loop, 'docker_image')).reason, 'link_loop')
  const nested = tarOf({ name: 'index.json', body: Buffer.alloc(5 * 1024 ** 2, ' ') })
  assert.equal((await refusalOf(t, nested)).reason, 'too_long')
})

test('a bomb ends at the limit: zeros in a layer, around the layers, and many small files', async (t) => {
  const zeros = tarOf(SERVER, { name: 'zeros', body: Buffer.alloc(80 * 1024 ** 2) })
  const small = { ratio_free_bytes: 1024 ** 2 }
  for (const stored of [gzipSync(zeros), zstdCompressSync(zeros)]) {
    const image = forgedImage([stored], { diff_ids: idsOf(zeros) })
    assert.equal((await refusalOf(t, image, 'oci_bundle', small)).reason, 'ratio')
    assert.equal((await refusalOf(t, image, 'oci_bundle', { bytes_max: 1024 ** 2 })).reason, 'too_many_bytes')
  }
  assert.equal((await refusalOf(t, gzipSync(forgedImage([zeros])), 'oci_bundle', small)).reason, 'ratio')
  // A header that announces 10 GB: refused before a byte of it is read.
  const announced = tarOf(SERVER, { name: 'zeros', size: `${(10 * 1024 ** 3).toString(8).padStart(12, '0')}` })
  assert.equal((await refusalOf(t, forgedImage([announced]))).reason, 'too_many_bytes')
  const many = tarOf(SERVER, ...Array.from({ length: 50 }, (_, number) => ({ name: `f${number}` })))
  const refusal = await refusalOf(t, forgedImage([many]), 'oci_bundle', { entries_max: 40 })
  assert.equal(refusal.reason, 'too_many_entries')
})

test('set-uid files, links to anywhere and devices of /dev are accepted as harmless', async (t) => {
  const layer = tarOf(
    { ...SERVER, mode: 0o6755 },
    { name: 'lib', type: '2', link: '../../../../etc' },
    { name: 'dev/null', type: '3' },
    { name: 'Man/page::x', body: Buffer.from('1') },
    { name: 'man/page::x', body: Buffer.from('2') },
  )
  const folder = makeFolder(t)
  const start = await checkImage(writeImage(folder, forgedImage([layer])), 'oci_bundle', folder)
  assert.deepEqual({ uid: start.uid, gid: start.gid }, { uid: 0, gid: 0 })
  assert.ok(readFileSync(`${folder}/forged.tar`).length > 0)
})

test('what a newer store saves as a docker image is accepted without a manifest.json', async (t) => {
  const folder = makeFolder(t)
  const start = await checkImage(writeImage(folder, forgedImage([tarOf(SERVER)])), 'docker_image', folder)
  assert.deepEqual(start.entrypoint, ['/server'])
})
