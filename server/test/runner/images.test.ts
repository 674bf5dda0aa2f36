import assert from 'node:assert'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { readdir, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { folderOfLobby } from '../../src/lobby-logs/local.ts'
import { checkImage } from '../../src/objects/container-image/image.ts'
import type { ImageKind } from '../../src/objects/container-image/manifest.ts'
import { quickDifference, readManifest } from '../../src/runner/build-manifest.ts'
import type { Exit, RunSpec } from '../../src/runner/drivers/driver.ts'
import { logIsWhole } from '../../src/runner/drivers/process/ending.ts'
import { lobbyCommand } from '../../src/runner/drivers/process/lobby-command.ts'
import { asUser } from '../../src/runner/drivers/process/monitor.ts'
import { UID_FIRST } from '../../src/runner/drivers/uids.ts'
import { readUnpackedImage } from '../../src/runner/images/image-store.ts'
import { LayerCache } from '../../src/runner/images/layer-cache.ts'
import { unpackImage } from '../../src/runner/images/unpack-image.ts'
import { type TarItem, tarOf } from '../archives/forgery.ts'
import { lacking, type Need } from '../run/optional-programs.ts'
import { startEngine } from '../support/container-engine.ts'
import {
  buildahImage,
  busyboxRoot,
  compressFile,
  forgedImage,
  IMAGE_TOOLS,
  type ImageOptions,
  makeFolder,
  muslRoot,
  pythonRoot,
  umociImage,
  writeImage,
} from '../support/container-images.ts'
import { type DriverFixture, howOf, needsOf, openDriver, TIER } from './driver-fixture.ts'

type Store = { folder: string; layers: string; cache: LayerCache }

async function openStore(data_dir: string): Promise<Store> {
  const layers = join(data_dir, 'builds.layers')
  return { folder: join(data_dir, 'builds'), layers, cache: await LayerCache.open(layers, Date.now) }
}

/** Checks the image as an upload does, and unpacks it as a start does. */
async function unpack({ folder, cache }: Store, path: string, kind: ImageKind) {
  mkdirSync(folder, { recursive: true })
  const image = await checkImage(path, kind, folder)
  const build_id = newId(Date.now())
  const place = {
    target: join(folder, build_id),
    manifest_path: join(folder, `${build_id}.manifest`),
    image_path: join(folder, `${build_id}.image`),
  }
  await unpackImage(path, kind, image, cache, place)
  return { build_folder: place.target, image, ...place }
}

type Ran = { exit: Exit; stdout: string; stderr: string }

async function run(
  { driver, start, ended, data_dir }: DriverFixture,
  { build_folder, image }: Pick<Awaited<ReturnType<typeof unpack>>, 'build_folder' | 'image'>,
  spec: Partial<RunSpec> = {},
): Promise<Ran> {
  const args = [...image.entrypoint, ...image.cmd]
  const handle = await start({ build_folder, image, args, env: image.env, ...spec })
  const exit = await ended(handle)
  await logIsWhole(folderOfLobby(join(data_dir, 'lobbies'), handle.lobby_id))
  const textOf = async (stream: 'stdout' | 'stderr') =>
    (await driver.logs(handle.lobby_id, stream, 1_000)).map(({ bytes }) => `${bytes}\n`).join('')
  return { exit, stdout: await textOf('stdout'), stderr: await textOf('stderr') }
}

/** The mounts below a folder. Other tests mount at the same time. */
function mountsBelow(folder: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(` ${folder}/`))
}

function requireTools(t: TestContext, ...more: readonly Need[]): boolean {
  const missing = lacking(...IMAGE_TOOLS, 'bwrap', ...more)
  if (missing !== null) t.skip(missing)
  return missing === null
}

/** The same image by two independent tools. `roots` are its layers. */
function imagesOf(folder: string, roots: readonly string[], options: ImageOptions): [string, ImageKind][] {
  return [
    [buildahImage(folder, roots, options, 'docker-archive'), 'docker_image'],
    [umociImage(folder, roots, options), 'oci_bundle'],
  ]
}

const USERS = { 'etc/passwd': 'player:x:1234:56::/:\n', 'etc/group': 'games:x:77:\n' }
const SCRIPT = `#!/bin/sh
id -u; id -g; echo "$GREETING"; echo "$*"; /bin/busybox pwd; cat data/level
echo new > /srv/game/new && cat /srv/game/new
echo changed > data/level && cat data/level
ls /usr /build 2>&1
echo made > /new && cat /new
touch /etc/passwd && echo users
`

test('a static program runs with the entrypoint, command, environment, folder and user of its image', async (t) => {
  if (!requireTools(t)) return
  const folder = makeFolder(t)
  const files = { ...USERS, 'srv/game/start': SCRIPT, 'srv/game/data/level': 'one\n' }
  const roots = [busyboxRoot(folder, files)]
  const options = {
    entrypoint: ['./start'],
    cmd: ['--fast'],
    env: { GREETING: 'hello there' },
    working_folder: '/srv/game',
  }
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  for (const [path, kind] of imagesOf(folder, roots, { ...options, user: '0' })) {
    const build = await unpack(store, path, kind)
    const { exit, stdout, stderr } = await run(driver, build)
    assert.deepEqual(howOf(exit), { exit_code: 0, reason: 'exit' }, stderr)
    const lines = stdout.split('\n')
    assert.deepEqual(lines.slice(0, 6), ['0', '0', 'hello there', '--fast', '/srv/game', 'one'])
    assert.deepEqual(lines.slice(6, 8), ['new', 'changed'])
    assert.match(stdout, /\/usr: No such file[\s\S]*\/build: No such file/)
    assert.deepEqual(lines.slice(-3, -1), ['made', 'users'])
    assert.equal(statSync(build.build_folder).mode & 0o007, 0, 'no right for other users of the machine')
    assert.equal(statSync(store.layers).mode & 0o077, 0)
    assert.equal(readFileSync(join(build.build_folder, 'srv/game/data/level'), 'utf8'), 'one\n')
    const manifest = await readManifest(build.manifest_path)
    assert.equal(quickDifference(build.build_folder, manifest!), null)
  }
})

test("an image's own user gets only what the image grants that user", async (t) => {
  if (!requireTools(t)) return
  const folder = makeFolder(t)
  const script = `id -u; id -g
    echo x > /own/file && echo own
    echo x > /srv/file 2>/dev/null || echo refused
    echo x > /new 2>/dev/null || echo not root
    cat /etc/secret 2>/dev/null || echo unreadable
    echo x > /tmp/file && echo tmp; echo x > $HOME/file && echo home`
  const items: TarItem[] = [
    { name: 'srv', type: '5', mode: 0o755 },
    { name: 'own', type: '5', mode: 0o777 },
    { name: 'etc', type: '5', mode: 0o755 },
    { name: 'etc/passwd', body: Buffer.from(USERS['etc/passwd']) },
    { name: 'etc/group', body: Buffer.from(USERS['etc/group']) },
    { name: 'etc/secret', mode: 0o600, body: Buffer.from('secret') },
    { name: 'bin', type: '5', mode: 0o755 },
    { name: 'bin/sh', mode: 0o4755, body: readFileSync(join(busyboxRoot(folder), 'bin/busybox')) },
    ...['id', 'cat'].map((name): TarItem => ({ name: `bin/${name}`, type: '2', link: 'sh' })),
  ]
  const layer = join(folder, 'layer.tar')
  writeFileSync(layer, tarOf(...items))
  const root = join(folder, 'own-root')
  mkdirSync(root)
  execFileSync('tar', ['-C', root, '--no-same-owner', '-xpf', layer])
  const entrypoint = ['sh', '-c', script]
  const config = { config: { User: 'player:games', Entrypoint: entrypoint } }
  const forged = writeImage(folder, forgedImage([readFileSync(layer)], { config }))
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  const made = imagesOf(folder, [root], { entrypoint, user: 'player:games' })
  for (const [path, kind] of [...made, [forged, 'oci_bundle']] as const) {
    const build = await unpack(store, path, kind)
    assert.equal(statSync(join(build.build_folder, 'bin/sh')).mode & 0o7000, 0)
    const { stdout, stderr } = await run(driver, build)
    const lines = stdout.split('\n').slice(0, -1)
    assert.deepEqual(
      lines,
      ['1234', '77', 'own', 'refused', 'not root', 'unreadable', 'tmp', 'home'],
      `${path}: ${stderr}`,
    )
  }
})

test('no other user of the machine reaches the files of an image, also where its lobby enters their folder', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root runs lobbies as other users')
  const folder = makeFolder(t)
  chmodSync(folder, 0o711)
  const store = await openStore(folder)
  const layer = tarOf({ name: 'data', mode: 0o777, body: Buffer.from('data') })
  const { build_folder, image } = await unpack(store, writeImage(folder, forgedImage([layer])), 'oci_bundle')
  chmodSync(store.folder, 0o711)
  const file = join(build_folder, 'data')
  const reads = ([program, ...args]: string[]) => spawnSync(program!, [...args, 'cat', file]).stdout.toString()
  const requireClosed = () => {
    assert.equal(reads(asUser(UID_FIRST)), '', 'another user')
    assert.equal(reads(asUser(UID_FIRST, process.getgid!())), '', "another user of the platform's group")
  }
  requireClosed()
  const files = { node: '', passwd: '', group: '', resolver: '', seccomp: null }
  const { command } = lobbyCommand(
    {
      ...{ builds_folder: store.folder, lobbies_folder: folder, programs_folder: folder, files, cgroups: null },
      ...{ gives_uids: true, disks: null, bubblewrap: { disable_userns: true }, networks: null },
    },
    folder,
    { lobby_id: newId(Date.now()), build_folder, image, args: [], env: {}, tier: TIER },
    [],
    { uid: UID_FIRST + 1, groups: [], disk: null },
  )
  assert.equal(reads(command.slice(0, command.indexOf('--') + 1)), 'data', 'the user of the lobby')
  requireClosed()
})

test('Python runs in an image with the libraries and the C library of the image', async (t) => {
  if (!requireTools(t)) return
  const folder = makeFolder(t)
  const server =
    'import json, os, http.cookies\nprint(json.dumps([os.getcwd(), os.path.exists("/usr/share/doc"), 6 * 7]))\n'
  const root = pythonRoot(folder, { 'srv/server.py': server })
  const options = { entrypoint: ['python3', '-B'], cmd: ['server.py'], working_folder: '/srv' }
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  for (const [path, kind] of imagesOf(folder, [root], options)) {
    const { stdout, stderr } = await run(driver, await unpack(store, path, kind))
    assert.equal(stdout, '["/srv", false, 42]\n', `${path}: ${stderr}`)
  }
})

test("a program of another C library runs with its image's loader, and loads nothing of the machine", async (t) => {
  if (!requireTools(t, 'musl-gcc')) return
  const folder = makeFolder(t)
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  for (const [path, kind] of imagesOf(folder, [muslRoot(folder)], { entrypoint: ['/srv/server'] })) {
    const { stdout, stderr } = await run(driver, await unpack(store, path, kind))
    assert.match(stdout, /^\/srv\/server\n\/lib\/ld-musl-\S+\n$/, `${path}: ${stderr}`)
  }
})

test('what a Docker engine saves runs: plain, gzip and zstd', async (t) => {
  if (!requireTools(t, ...needsOf('docker'), 'containerd', 'runc')) return
  const folder = makeFolder(t)
  const engine = await startEngine(t, join(folder, 'engine'), { has_network: false })
  const root_tar = join(folder, 'root.tar')
  execFileSync('tar', ['-C', busyboxRoot(folder, USERS), '-cf', root_tar, '.'])
  const changes = [
    'ENTRYPOINT ["/bin/sh", "-c", "id -u; id -g; /bin/busybox pwd; echo $GREETING $0"]',
    ...['CMD ["from-cmd"]', 'ENV GREETING=hello', 'WORKDIR /srv/game', 'USER player'],
  ]
  const saved = join(folder, 'saved.tar')
  try {
    await engine.docker(['import', ...changes.flatMap((change) => ['--change', change]), root_tar, 'game:1'])
    await engine.docker(['save', '--output', saved, 'game:1'])
  } finally {
    // Before its folder is removed.
    await engine.end()
  }
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  for (const path of [saved, compressFile(saved, 'gzip'), compressFile(saved, 'zstd')]) {
    const { stdout, stderr } = await run(driver, await unpack(store, path, 'docker_image'))
    assert.equal(stdout, '1234\n56\n/srv/game\nhello from-cmd\n', `${path}: ${stderr}`)
  }
})

test('the stop signal of the image ends its program', async (t) => {
  if (!requireTools(t)) return
  const folder = makeFolder(t)
  const script = 'trap "exit 7" USR1; trap "exit 8" TERM; echo up; while :; do sleep 0.05; done'
  const options = { entrypoint: ['/bin/sh', '-c', script], stop_signal: 'SIGUSR1' }
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  const { build_folder, image } = await unpack(
    store,
    buildahImage(folder, [busyboxRoot(folder)], options, 'docker-archive'),
    'docker_image',
  )
  const handle = await driver.start({ build_folder, image, args: image.entrypoint })
  await driver.line(handle, /^up$/)
  await driver.driver.stop(handle, 30_000)
  assert.deepEqual(howOf(await driver.ended(handle)), { exit_code: 7, reason: 'exit' })
})

test('the writable layer is limited, and nothing stays mounted after the lobby', async (t) => {
  if (!requireTools(t)) return
  const folder = makeFolder(t)
  const script = 'dd if=/dev/zero of=/srv/zeros bs=65536 count=1000 2>/dev/null || echo full; stat -c %s /srv/zeros'
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  const image_file = buildahImage(
    folder,
    [busyboxRoot(folder)],
    { entrypoint: ['/bin/sh', '-c', script] },
    'oci-archive',
  )
  const build = await unpack(store, image_file, 'oci_bundle')
  const before = mountsBelow(driver.data_dir)
  const { stdout } = await run(driver, build)
  const [full, bytes] = stdout.split('\n')
  assert.equal(full, 'full')
  assert.ok(Number(bytes) > 0 && Number(bytes) <= TIER.disk_bytes, `${bytes} bytes`)
  assert.deepEqual(mountsBelow(driver.data_dir), before)
})

test('a lobby of an image that is killed with its monitor leaves no mount', async (t) => {
  if (!requireTools(t)) return
  const folder = makeFolder(t)
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  const options = { entrypoint: ['/bin/sh', '-c', 'echo up; sleep 1000'] }
  const { build_folder, image } = await unpack(store, umociImage(folder, [busyboxRoot(folder)], options), 'oci_bundle')
  const before = mountsBelow(driver.data_dir)
  const handle = await driver.start({ build_folder, image, args: image.entrypoint })
  await driver.line(handle, /^up$/)
  process.kill(handle.pid, 'SIGKILL')
  await driver.ended(handle)
  assert.deepEqual(mountsBelow(driver.data_dir), before)
})

test('a program is searched in the image only, and links lead from its root', async (t) => {
  if (!requireTools(t)) return
  const folder = makeFolder(t)
  const driver = await openDriver(t, 'required')
  const store = await openStore(driver.data_dir)
  const root = busyboxRoot(folder, { 'srv/plain': 'text' })
  mkdirSync(join(root, 'usr'), { recursive: true })
  symlinkSync('../../../../bin', join(root, 'usr/bin'))
  const { build_folder, image } = await unpack(
    store,
    buildahImage(folder, [root], { env: { PATH: '/none:/usr/bin' } }, 'oci-archive'),
    'oci_bundle',
  )
  const refusalOf = async (name: string, working_folder = image.working_folder): Promise<string> => {
    const started = await driver.driver.start({
      ...{ lobby_id: newId(Date.now()), build_folder, args: [name], env: image.env, tier: TIER },
      image: { ...image, working_folder },
    })
    return 'refused' in started ? started.refused : 'started'
  }
  assert.equal(await refusalOf('python3'), 'no_such_file')
  assert.equal(await refusalOf('/usr/lib/os-release'), 'no_such_file')
  assert.equal(await refusalOf('/srv/plain'), 'not_executable')
  assert.equal(await refusalOf('id'), 'started')
  assert.equal(await refusalOf('id', '/usr/bin'), 'started')
  assert.equal(await refusalOf('id', '/srv/none'), 'no_such_file')
  assert.equal(await refusalOf('id', '/srv/plain'), 'no_such_file')
})

test('layers replace, remove and hide files of lower layers', async (t) => {
  const folder = makeFolder(t)
  const store = await openStore(folder)
  const file = (name: string, text = name): TarItem => ({ name, body: Buffer.from(text) })
  const lower = tarOf(
    ...[file('a/one'), file('a/two'), file('b/one'), file('b/deep/two'), file('c'), file('d/x')],
    { name: 'e', type: '2', link: '/d' },
    { name: 'a/hard', type: '1', link: 'a/one' },
  )
  const upper = tarOf(
    ...[file('a/.wh.one', ''), file('b/.wh..wh..opq', ''), file('b/new'), file('c/inside'), file('e/real')],
    file('.wh.d', ''),
    file('a/.wh.nothing', ''),
  )
  const { build_folder } = await unpack(store, writeImage(folder, forgedImage([lower, upper])), 'oci_bundle')
  const files = (await readdir(build_folder, { recursive: true, withFileTypes: true }))
    .filter((item) => item.isFile())
    .map((item) => join(item.parentPath, item.name).slice(build_folder.length + 1))
  assert.deepEqual(files.sort(), ['a/hard', 'a/two', 'b/new', 'c/inside', 'e/real', 'etc/hosts', 'etc/resolv.conf'])
  assert.equal(readFileSync(join(build_folder, 'a/hard'), 'utf8'), 'a/one')
})

test('a layer is stored once for all builds, and is removed when no build uses it', async (t) => {
  const folder = makeFolder(t)
  const store = await openStore(folder)
  const base = tarOf({ name: 'base', body: Buffer.alloc(100_000, 'b') })
  const builds = []
  for (const name of ['one', 'two']) {
    const own = tarOf({ name, body: Buffer.from(name) })
    builds.push(await unpack(store, writeImage(folder, forgedImage([base, own])), 'oci_bundle'))
  }
  const [one, two] = builds.map(({ build_folder }) => statSync(join(build_folder, 'base')))
  assert.equal(one!.ino, two!.ino)
  assert.equal((await readdir(store.layers)).length, 3)
  // The second build has linked the file once more, which the first one survives.
  const manifest = await readManifest(builds[0]!.manifest_path)
  assert.equal(quickDifference(builds[0]!.build_folder, manifest!), null)

  const used = new Set((await readUnpackedImage(builds[1]!.image_path))!.layers!)
  await store.cache.sweep(used)
  assert.equal((await readdir(store.layers)).length, 3)
  for (const name of await readdir(store.layers)) await utimes(join(store.layers, name), 1, 1)
  await store.cache.sweep(used)
  assert.deepEqual((await readdir(store.layers)).sort(), [...used].sort())
  assert.equal(readFileSync(join(builds[0]!.build_folder, 'one'), 'utf8'), 'one')
})

test('a damaged layer fails one unpacking and is unpacked again', async (t) => {
  const folder = makeFolder(t)
  const store = await openStore(folder)
  const path = writeImage(folder, forgedImage([tarOf({ name: 'file', body: Buffer.from('right') })]))
  await unpack(store, path, 'oci_bundle')
  const [name] = await readdir(store.layers)
  writeFileSync(join(store.layers, name!, '0'), 'wrong')
  await assert.rejects(unpack(store, path, 'oci_bundle'), /differs from the written bytes/)
  const { build_folder } = await unpack(store, path, 'oci_bundle')
  assert.equal(readFileSync(join(build_folder, 'file'), 'utf8'), 'right')
  rmSync(store.layers, { recursive: true })
})
