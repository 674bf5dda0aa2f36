// Container images of builds in a container engine.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { folderOfLobby, hasOutputPipe } from '../../src/lobby-logs/local.ts'
import type { ImageStart } from '../../src/objects/container-image/config.ts'
import { checkImage } from '../../src/objects/container-image/image.ts'
import type { ImageKind } from '../../src/objects/container-image/manifest.ts'
import type { RunSpec } from '../../src/runner/drivers/driver.ts'
import { type TarItem, tarOf } from '../archives/forgery.ts'
import { lacking } from '../run/optional-programs.ts'
import { ENGINES } from '../support/container-engine.ts'
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
import { until } from '../support/until.ts'
import {
  CONTAINERS,
  type ContainerKind,
  type DriverFixture,
  howOf,
  needsOf,
  openDriver,
  reopenDriver,
  sharedEngine,
  sharedSwarm,
  TIER,
} from './driver-fixture.ts'

function promise(
  name: string,
  run: (t: TestContext, kind: ContainerKind) => Promise<void>,
  kinds: readonly ContainerKind[] = CONTAINERS,
): void {
  for (const kind of kinds) {
    test(`${name} (${kind})`, async (t) => {
      const missing = lacking(...needsOf(kind), ...IMAGE_TOOLS)
      return missing === null ? run(t, kind) : t.skip(missing)
    })
  }
}

/** Containers, one after another: Podman refuses many starts at once. `ROUNDS=50` for more. */
const SHORT_LOBBIES = Number(process.env.ROUNDS ?? 4)

type Given = { build_id: string; build_folder: string; start: ImageStart }

/** Checks the image as an upload does, and gives it to the engine as a start does. */
async function give({ driver, data_dir }: DriverFixture, path: string, kind: ImageKind): Promise<Given> {
  const folder = join(data_dir, 'builds')
  mkdirSync(folder, { recursive: true })
  const start = await checkImage(path, kind, folder)
  const build_id = newId(Date.now())
  const target = join(folder, build_id)
  await driver.images!.unpack(path, kind, start, {
    target,
    manifest_path: join(data_dir, `${build_id}.manifest`),
    image_path: join(data_dir, `${build_id}.image`),
  })
  return { build_id, build_folder: target, start }
}

const specOf = ({ build_id, build_folder, start }: Given) => ({
  build_folder,
  image: { build_id, ...start },
  args: [...start.entrypoint, ...start.cmd],
  env: start.env,
})

async function outputOf(fixture: DriverFixture, spec: Parameters<DriverFixture['start']>[0]): Promise<string[]> {
  const handle = await fixture.start(spec)
  const exit = await fixture.ended(handle)
  const folder = folderOfLobby(join(fixture.data_dir, 'lobbies'), handle.lobby_id)
  await until('the log is whole', () => !hasOutputPipe(folder, 'stdout') && !hasOutputPipe(folder, 'stderr'))
  const textOf = async (stream: 'stdout' | 'stderr') =>
    (await fixture.driver.logs(handle.lobby_id, stream, 1_000)).map(({ bytes }) => bytes.toString())
  assert.deepEqual(howOf(exit), { exit_code: 0, reason: 'exit' }, (await textOf('stderr')).join('\n'))
  return textOf('stdout')
}

const USERS = { 'etc/passwd': 'player:x:1234:56::/:\n', 'etc/group': 'games:x:77:\n' }
const SCRIPT = `#!/bin/sh
id -u; id -g; echo "$GREETING"; echo "$*"; /bin/busybox pwd; cat data/level
echo x > data/level 2>/dev/null || echo read-only
echo x > "$HOME/file" && echo x > /tmp/file && echo writable; cat "$HOME/config"
`

promise('images run with the entrypoint, command, environment, folder and user of the image', async (t, kind) => {
  const folder = makeFolder(t)
  const roots = [busyboxRoot(folder, { ...USERS, 'srv/game/start': SCRIPT, 'srv/game/data/level': 'one\n' })]
  const options = {
    entrypoint: ['./start'],
    cmd: ['--fast'],
    env: { GREETING: 'hello there' },
    working_folder: '/srv/game',
  }
  const fixture = await openDriver(t, kind)
  const saved = buildahImage(folder, roots, { ...options, user: 'player:games' }, 'docker-archive')
  const layout = umociImage(folder, roots, { ...options, user: '0' })
  for (const [path, image_kind, user] of [
    [saved, 'docker_image', ['1234', '77']],
    [compressFile(layout, 'zstd'), 'oci_bundle', ['0', '0']],
  ] as const) {
    const given = await give(fixture, path, image_kind)
    const files = [{ path: 'config', content: 'written' }]
    const lines = await outputOf(fixture, { ...specOf(given), files })
    const rest = ['hello there', '--fast', '/srv/game', 'one', 'read-only', 'writable', 'written']
    assert.deepEqual(lines, [...user, ...rest])
  }
})

promise(
  'containers that end at once have whole logs',
  async (t, kind) => {
    const folder = makeFolder(t)
    const fixture = await openDriver(t, kind)
    const options = { entrypoint: ['/bin/sh', '-c', 'echo ran'] }
    const given = await give(fixture, umociImage(folder, [busyboxRoot(folder)], options), 'oci_bundle')
    for (let count = 0; count < SHORT_LOBBIES; count++) {
      assert.deepEqual(await outputOf(fixture, specOf(given)), ['ran'])
    }
  },
  ENGINES,
)

promise('the version config overrides what the image says, and a wrong value is named', async (t, kind) => {
  const folder = makeFolder(t)
  const root = busyboxRoot(folder, {
    'srv/plain': 'text',
    'srv/tools/run': '#!/bin/sh\nid -u; id -g; pwd; echo "$*"\n',
  })
  mkdirSync(join(root, 'usr'))
  symlinkSync('../../../../bin', join(root, 'usr/bin'))
  const options = { entrypoint: ['sh', '-c', 'exit 9'], env: { PATH: '/none:/usr/bin' } }
  const fixture = await openDriver(t, kind)
  const given = await give(fixture, buildahImage(folder, [root], options, 'oci-archive'), 'oci_bundle')
  const { build_folder, image, env } = specOf(given)
  const other = { ...image, uid: 4321, gid: 8, working_folder: '/srv/tools' }
  const lines = await outputOf(fixture, { build_folder, env, image: other, args: ['./run', 'a b'] })
  assert.deepEqual(lines, ['4321', '8', '/srv/tools', 'a b'])

  const refusalOf = async (name: string, working_folder = image.working_folder): Promise<string> => {
    const lobby_id = newId(Date.now())
    const spec: RunSpec = { lobby_id, build_folder, args: [name], env, tier: TIER, image: { ...image, working_folder } }
    const started = await fixture.driver.start(spec)
    return 'refused' in started ? `${started.refused}: ${started.message}` : 'started'
  }
  assert.match(await refusalOf('python3'), /^no_such_file: "python3", the program to start, is not in the image/)
  assert.match(await refusalOf('/srv/plain'), /^not_executable: /)
  assert.match(await refusalOf('tools/run'), /^no_such_file: /)
  assert.match(await refusalOf('id', '/srv/none'), /^no_such_file: "\/srv\/none", the working folder, /)
  assert.match(await refusalOf('id', '/srv/plain'), /^no_such_file: /)
  assert.equal(await refusalOf('id', '/usr/bin'), 'started')
  assert.equal(await refusalOf('/usr/bin/id'), 'started')
})

promise('the stop signal of the image ends its program, also after a restart of the runner', async (t, kind) => {
  const folder = makeFolder(t)
  const script = 'trap "exit 7" USR1; trap "exit 8" TERM; echo up; while :; do sleep 0.05; done'
  const options = { entrypoint: ['/bin/sh', '-c', script], stop_signal: 'SIGUSR1' }
  const fixture = await openDriver(t, kind)
  const path = buildahImage(folder, [busyboxRoot(folder)], options, 'docker-archive')
  const given = await give(fixture, path, 'docker_image')
  const handles = [await fixture.start(specOf(given)), await fixture.start(specOf(given))]
  for (const handle of handles) await fixture.line(handle, /^up$/)
  const [first, second] = handles
  await fixture.driver.stop(first!, 30_000)
  assert.deepEqual(howOf(await fixture.ended(first!)), { exit_code: 7, reason: 'exit' })
  await fixture.driver.close({ logger: 'keep' })
  const driver = await reopenDriver(t, kind, fixture.data_dir)
  assert.deepEqual(await driver.list(), [second])
  await driver.stop(second!, 30_000)
  assert.deepEqual(howOf(await driver.exit(second!)), { exit_code: 7, reason: 'exit' })
})

promise(
  'an image is in the engine while its build exists, and is missed when it is gone',
  async (t, kind) => {
    const folder = makeFolder(t)
    const fixture = await openDriver(t, kind)
    const { driver, data_dir } = fixture
    const { docker } = await sharedEngine(kind)
    const options = { entrypoint: ['/bin/sh', '-c', 'echo ran'] }
    const path = umociImage(folder, [busyboxRoot(folder)], options)
    const [first, second] = [await give(fixture, path, 'oci_bundle'), await give(fixture, path, 'oci_bundle')]
    const imagesOf = async ({ build_id }: Given): Promise<string[]> =>
      (await docker(['images', '--quiet', '--filter', `label=muster.build_id=${build_id}`])).split('\n').filter(Boolean)
    const sweep = (): Promise<void> =>
      driver.images!.sweep({ names: [], folderOf: (name) => join(data_dir, 'builds', name), imagePathOf: () => '' })

    assert.deepEqual([driver.images!.isThere(first.build_id), (await imagesOf(first)).length], [true, 1])
    rmSync(first.build_folder, { recursive: true })
    await sweep()
    assert.deepEqual([driver.images!.isThere(first.build_id), await imagesOf(first)], [false, []])
    assert.deepEqual(await outputOf(fixture, specOf(second)), ['ran'])

    // An operator frees room in the engine.
    await docker(['rmi', '--force', ...(await imagesOf(second))])
    const lobby_id = newId(Date.now())
    const started = await driver.start({ lobby_id, tier: TIER, ...specOf(second) })
    assert.ok('refused' in started && started.refused === 'no_build')
    assert.match(started.message, /has lost the image/)
    assert.equal(driver.images!.isThere(second.build_id), false)
  },
  ENGINES,
)

promise(
  'a Swarm pulls an image to the node that needs it, pulls it again when it is gone, and removes it with its build',
  async (t, kind) => {
    const folder = makeFolder(t)
    const fixture = await openDriver(t, kind)
    const { driver, data_dir } = fixture
    const { machines } = await sharedSwarm()
    const options = { entrypoint: ['/bin/sh', '-c', 'echo ran'] }
    const path = umociImage(folder, [busyboxRoot(folder)], options)
    const [first, second] = [await give(fixture, path, 'oci_bundle'), await give(fixture, path, 'oci_bundle')]
    const imagesOf = async ({ build_id }: Given): Promise<number[]> =>
      Promise.all(
        machines.map(async ({ engine }) => {
          const listed = await engine.docker(['images', '--quiet', '--filter', `label=muster.image=${build_id}`])
          return listed.split('\n').filter(Boolean).length
        }),
      )
    const sweep = (): Promise<void> =>
      driver.images!.sweep({ names: [], folderOf: (name) => join(data_dir, 'builds', name), imagePathOf: () => '' })
    const on = (index: number) => ({ node_id: machines[index]!.node_id, ports: [] })

    assert.deepEqual(await imagesOf(first), [0, 0])
    assert.deepEqual(await outputOf(fixture, { ...specOf(first), place: on(1) }), ['ran'])
    assert.deepEqual(
      [await imagesOf(first), await imagesOf(second)],
      [
        [0, 1],
        [0, 0],
      ],
    )
    await driver.sweep()
    const ids = await machines[1]!.engine.docker([
      'images',
      '--quiet',
      '--filter',
      `label=muster.image=${first.build_id}`,
    ])
    await machines[1]!.engine.docker(['rmi', '--force', ids.trim()])
    assert.deepEqual(await outputOf(fixture, { ...specOf(first), place: on(1) }), ['ran'])

    rmSync(first.build_folder, { recursive: true })
    // An engine keeps an image while a container has it.
    await until('the image is gone', async () => {
      await driver.sweep()
      await sweep()
      return (await imagesOf(first)).every((count) => count === 0)
    })
    assert.equal(driver.images!.isThere(first.build_id), false)
    assert.deepEqual(await outputOf(fixture, specOf(second)), ['ran'], 'the layers are those of the other build too')
  },
  ['swarm'],
)

promise('a damaged image does not reach the engine', async (t, kind) => {
  const folder = makeFolder(t)
  const fixture = await openDriver(t, kind)
  const { docker } = await sharedEngine(kind)
  const before = await docker(['images', '--quiet'])
  const file = (name: string): TarItem => ({ name, body: Buffer.from(name) })
  const layers = [tarOf(file('server')), tarOf(file('more'))]
  const good = await checkImage(writeImage(folder, forgedImage(layers)), 'oci_bundle', folder)
  const bad = forgedImage(layers, { diff_ids: [0, 1].map((index) => `sha256:${String(index).repeat(64)}`) })
  const path = writeImage(folder, bad)
  const build_id = newId(Date.now())
  const place = { target: join(folder, build_id), manifest_path: `${folder}/m`, image_path: `${folder}/i` }
  await assert.rejects(fixture.driver.images!.unpack(path, 'oci_bundle', good, place), { code: 'ARCHIVE_INVALID' })
  assert.deepEqual([existsSync(place.target), await docker(['images', '--quiet'])], [false, before])
})
