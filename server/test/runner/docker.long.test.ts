import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { newId } from '../../src/ids.ts'
import { folderOfLobby, hasOutputPipe } from '../../src/lobby-logs/local.ts'
import { type Handle, neverRan } from '../../src/runner/drivers/driver.ts'
import { useDriver } from '../../src/runner/drivers/driver-choice.ts'
import { writeEnded } from '../../src/runner/drivers/lobby-folder.ts'
import { lacking } from '../run/optional-programs.ts'
import type { Engine } from '../support/container-engine.ts'
import { until } from '../support/until.ts'
import { BASE_IMAGE } from './base-image.ts'
import {
  CONTAINERS,
  type ContainerKind,
  howOf,
  makeDataFolder,
  needsOf,
  openContainerDriver,
  openDriver,
  reopenDriver,
  sharedEngine,
  swarmSettings,
  TIER,
  writeBuild,
} from './driver-fixture.ts'
import { openEngineDriver } from './engine-driver.ts'

const STARTER = fileURLToPath(new URL('./docker-starter.ts', import.meta.url))
const COUNT = 2_000
/** The Swarm gives a container the name of its service and of its task. */
const TASK_SUFFIX = /\.1\.[a-z0-9]+$/
/** Points in the start of a lobby at which the runner is killed. */
const POINTS: Record<string, (lobby_id: string, engine: Engine) => Promise<boolean> | boolean> = {
  'nothing exists': () => true,
  'it has a control group': (lobby_id) => groupsOf(lobby_id).length > 0,
  'it has a container': async (lobby_id, engine) => (await listed(engine, 'containers')).includes(`muster-${lobby_id}`),
  'its files are written': async (lobby_id, engine) =>
    (await listed(engine, 'containers')).includes(`muster-${lobby_id}-files`),
  'it runs': async (lobby_id, { docker }) => (await docker(['ps'])).includes(lobby_id),
}

function promise(name: string, run: (t: TestContext, kind: ContainerKind) => Promise<void>): void {
  for (const kind of CONTAINERS) {
    test(`${name} (${kind})`, async (t) => {
      const missing = lacking(...needsOf(kind))
      return missing === null ? run(t, kind) : t.skip(missing)
    })
  }
}

async function listed({ docker }: Engine, kind: 'containers' | 'volumes'): Promise<string[]> {
  const args = kind === 'containers' ? ['ps', '--all', '--format', '{{.Names}}'] : ['volume', 'ls', '--quiet']
  const text = await docker(args)
  return text.split('\n').flatMap((line) => (line === '' ? [] : line.replace(TASK_SUFFIX, '')))
}

/** The control groups of a lobby, in every hierarchy. */
function groupsOf(lobby_id: string): string[] {
  const hierarchies = ['/sys/fs/cgroup', ...readdirSync('/sys/fs/cgroup').map((name) => join('/sys/fs/cgroup', name))]
  const parents = hierarchies.flatMap((folder) =>
    existsSync(join(folder, 'cgroup.procs'))
      ? readdirSync(folder).flatMap((name) => (name.startsWith('muster-') ? join(folder, name, lobby_id) : []))
      : [],
  )
  return parents.filter((folder) => existsSync(folder))
}

promise(
  'a lobby in a container sees its build and the image, with no capability and a read-only root',
  async (t, kind) => {
    const fixture = await openDriver(t, kind)
    writeFileSync(join(fixture.data_dir, 'secret'), 'canary', { mode: 0o666 })
    const build_folder = fixture.build({
      look: `#!/bin/sh
      cat "$1/secret" && echo LEAK data; ls "$1" && echo LEAK listing
      cat "$2/docker.sock" && echo LEAK socket
      echo x > /build/look && echo LEAK write build; echo x > /new && echo LEAK write root
      head -c 100000000 /dev/zero > /tmp/fill && echo LEAK tmp; head -c 100000000 /dev/zero > /dev/shm/fill && echo LEAK shm
      head -c 100000000 /dev/zero > "$HOME/fill" && echo LEAK scratch
      kill -0 "$3" && echo LEAK kill
      echo "processes $(ls /proc | while read name; do case $name in [0-9]*) echo x;; esac; done | cat)"
      while read line; do case $line in CapEff*|CapBnd*|NoNewPrivs*|Seccomp:*) echo "$line";; esac; done < /proc/self/status
      id; echo done`,
    })
    const { socket } = await sharedEngine(kind)
    const handle = await fixture.start({
      build_folder,
      args: ['look', fixture.data_dir, join(socket, '..'), String(process.pid)],
    })
    await fixture.line(handle, /^done$/)
    await fixture.ended(handle)
    const lines = (await fixture.driver.logs(handle.lobby_id, 'stdout', 1_000)).map(({ bytes }) => bytes.toString())
    assert.deepEqual(
      lines.filter((line) => line.includes('LEAK') || line.includes('canary')),
      [],
    )
    for (const name of ['CapEff', 'CapBnd']) assert.ok(lines.includes(`${name}:\t0000000000000000`), name)
    assert.ok(lines.includes('NoNewPrivs:\t1'))
    assert.ok(lines.includes('Seccomp:\t2'))
    // Podman gives the user a name.
    assert.ok(lines.some((line) => new RegExp(`^uid=${handle.uid}\\b`).test(line)))
  },
)

promise(
  'files are in the writable folder before the program starts, and the program may replace them',
  async (t, kind) => {
    const fixture = await openDriver(t, kind)
    const build_folder = fixture.build({
      'server.js': `
      const fs = require('fs')
      const folder = process.env.HOME
      console.log('read ' + fs.readFileSync(folder + '/a/b/config.txt', 'utf8') + fs.readFileSync(folder + '/top'))
      fs.writeFileSync(folder + '/a/b/new', 'new')
      fs.renameSync(folder + '/a/b/new', folder + '/a/b/config.txt')
      try { fs.writeFileSync(folder + '/large', Buffer.alloc(${2 * TIER.tmp_bytes})) } catch (error) { console.log(error.code) }
      console.log('renamed ' + fs.readFileSync(folder + '/a/b/config.txt'))`,
    })
    const files = [
      { path: 'a/b/config.txt', content: 'first ' },
      { path: 'top', content: 'é'.repeat(5_000) },
    ]
    const handle = await fixture.start({ build_folder, args: ['node', 'server.js'], files })
    await fixture.line(handle, /^read first é{5000}$/)
    await fixture.line(handle, /^ENOSPC$/)
    await fixture.line(handle, /^renamed new$/)
    assert.deepEqual(howOf(await fixture.ended(handle)), { exit_code: 0, reason: 'exit' })
    await fixture.driver.sweep()
    assert.ok(!(await listed(await sharedEngine(kind), 'volumes')).some((name) => name.includes(handle.lobby_id)))
  },
)

promise('a later runner takes a lobby over, and its log has every line once', async (t, kind) => {
  const fixture = await openDriver(t, kind)
  const build_folder = fixture.build({
    'counts.js': `
      let count = 0
      const timer = setInterval(() => {
        for (let more = 0; more < 20; more++) console.log('line ' + count++)
        if (count >= ${COUNT}) { clearInterval(timer); process.exitCode = 9 }
      }, 5)
      process.stdin.resume().unref?.()`,
  })
  const handle = await fixture.start({ build_folder, args: ['node', 'counts.js'], has_input: true })
  // The log is read from its end, so one line of it may be missed.
  await fixture.line(handle, /^line \d{3,}$/)
  await fixture.driver.close({ logger: 'keep' })
  const next = await reopenDriver(t, kind, fixture.data_dir)
  const [taken] = await next.list()
  // It may have ended already, which the engine may not have seen yet. The start of an ended process cannot be read.
  const start_time = taken?.start_time || handle.start_time
  if (taken !== undefined) assert.deepEqual({ ...taken, start_time }, handle)
  const exit = await until('it has ended', () => next.exit(handle))
  assert.deepEqual(howOf(exit), { exit_code: 9, reason: 'exit' })
  // An exit waits for the log, but not for ever.
  const folder = folderOfLobby(join(fixture.data_dir, 'lobbies'), handle.lobby_id)
  await until('the log is whole', () => !hasOutputPipe(folder, 'stdout'))
  // The runner of a Swarm reads it each second while the container runs, so it may have none of the second runner's time.
  assert.ok(kind === 'swarm' ? exit.cpu_ms !== 0 : (exit.cpu_ms ?? 0) > 0)
  assert.ok(exit.ran!.start_ts === handle.start_ts && exit.ran!.end_ts >= handle.start_ts)
  const lines = (await next.logs(handle.lobby_id, 'stdout', 2 * COUNT)).map(({ bytes }) => bytes.toString())
  assert.deepEqual(
    lines,
    Array.from({ length: COUNT }, (_, index) => `line ${index}`),
  )
})

promise('an end without a runner is found by the next one, with its log', async (t, kind) => {
  const fixture = await openDriver(t, kind)
  const build_folder = fixture.build({ run: '#!/bin/sh\nread -r line\necho "got $line" >&2\nexit 5\n' })
  const handle = await fixture.start({ build_folder, args: ['run'], has_input: true })
  await fixture.driver.write(handle.lobby_id, 'go', 'note')
  await fixture.driver.close({ logger: 'keep' })
  await until('it has ended', async () => (await fixture.processesOf(handle.lobby_id)).length === 0)
  const next = await reopenDriver(t, kind, fixture.data_dir)
  assert.deepEqual(await next.list(), [])
  assert.deepEqual(howOf(await next.exitOf(handle.lobby_id)), { exit_code: 5, reason: 'exit' })
  const errors = (await next.logs(handle.lobby_id, 'stderr', 10)).map(({ bytes }) => bytes.toString())
  assert.deepEqual(errors, ['[muster] note', 'got go'])
})

promise('a runner that is killed during starts leaves no container, volume or control group', async (t, kind) => {
  const engine = await sharedEngine(kind)
  const data_dir = makeDataFolder()
  const build_folder = writeBuild(data_dir, { run: '#!/bin/sh\nsleep 600\n' })
  const seen = new Set<string>()
  // Files are not written through a second container there.
  const missing = { docker: [], podman: ['its files are written'], swarm: ['it has a control group'] }[kind] as string[]
  const points = Object.entries(POINTS).filter(([point]) => !missing.includes(point))
  const where = kind === 'swarm' ? { swarm: await swarmSettings() } : { socket: engine.socket }
  for (const [point, isReached] of points) {
    const args = [STARTER, JSON.stringify({ data_dir, base_image: BASE_IMAGE, ...where }), build_folder]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let begun = 0
    let last = ''
    for await (const line of createInterface({ input: child.stdout })) {
      const [word, lobby_id = ''] = line.split(' ')
      seen.add(lobby_id)
      last = lobby_id
      // The second lobby has files.
      if (word === 'starting' && ++begun === 2) break
    }
    await until(`the start has reached the point: ${point}`, () => isReached(last, engine))
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  const fixture = await openDriver(t, kind, data_dir)
  const { driver } = fixture
  // The engine completes a request of a runner that was killed, so a container may begin to run after the list was read.
  const handles = await until('every lobby that was begun runs or has an end', async () => {
    const listed = await driver.list()
    const others = [...seen].filter((id) => !listed.some(({ lobby_id }) => lobby_id === id))
    const exits = await Promise.allSettled(others.map((lobby_id) => driver.exitOf(lobby_id)))
    for (const exit of exits) {
      if (exit.status === 'fulfilled') assert.match(exit.value.reason, /^(lost|not_started)$/)
    }
    return exits.every(({ status }) => status === 'fulfilled') ? listed : null
  })
  const running = new Set(handles.map(({ lobby_id }) => lobby_id))
  // A runner may have begun one more lobby before it was killed.
  for (const lobby_id of running) seen.add(lobby_id)
  assert.ok(handles.length >= points.length, `${handles.length} lobbies run`)
  // The engine may still create or remove a container for the runner that was killed. The next sweep finds it.
  const expected = [...running].map((lobby_id) => `muster-${lobby_id}`).sort()
  let names: string[] = []
  await until('only lobbies that run have a container', async () => {
    await driver.sweep()
    names = (await listed(engine, 'containers')).filter((name) => [...seen].some((lobby_id) => name.includes(lobby_id)))
    return isDeepStrictEqual(names.sort(), expected)
  }).catch(async (error: unknown) => {
    const states = await engine.docker(['ps', '--all', '--format', '{{.Names}} {{.Status}}'])
    throw new Error(`There are ${names.join(', ')} and not ${expected.join(', ')}. All: ${states}`, { cause: error })
  })
  await Promise.all(handles.map((handle) => endNow(fixture.driver, handle)))
  // The engine removes its own groups in its own time.
  await until('nothing is left', async () => {
    await driver.sweep()
    const left = [...(await listed(engine, 'containers')), ...(await listed(engine, 'volumes'))]
    return [...seen].every(
      (lobby_id) =>
        !left.some((name) => name.includes(lobby_id)) &&
        !existsSync(join(data_dir, 'lobbies', '.unfinished', lobby_id)) &&
        groupsOf(lobby_id).length === 0,
    )
  })
})

promise('a container that begins to run after its end was recorded is removed', async (t, kind) => {
  // A Swarm has no such container: its tasks end with their service.
  if (kind === 'swarm') return
  const fixture = await openDriver(t, kind)
  const build_folder = fixture.build({ run: '#!/bin/sh\nsleep 600\n' })
  const { lobby_id } = await fixture.start({ build_folder, args: ['run'] })
  await fixture.driver.close({ logger: 'keep' })
  writeEnded(folderOfLobby(join(fixture.data_dir, 'lobbies'), lobby_id), neverRan('not_started'))
  const next = await reopenDriver(t, kind, fixture.data_dir)
  await next.sweep()
  const left = await listed(await sharedEngine(kind), 'containers')
  assert.deepEqual(
    left.filter((name) => name.includes(lobby_id)),
    [],
  )
})

promise('without the base image or the engine, the reason and the remedy are named', async (t, kind) => {
  const { socket } = await sharedEngine(kind)
  const data_dir = makeDataFolder()
  const build_folder = writeBuild(data_dir, { run: '#!/bin/sh\n' })
  for (const [base_image, message] of [
    [null, /sets MUSTER_DOCKER_BASE_IMAGE/],
    ['no-such-image:1', /(no|the) image no-such-image:1.*MUSTER_DOCKER_BASE_IMAGE/],
  ] as const) {
    const driver = await openContainerDriver(kind, data_dir, base_image)
    t.after(() => driver.close({ logger: 'end' }))
    const lobby_id = newId(Date.now())
    const started = await driver.start({ lobby_id, build_folder, args: ['run'], env: {}, tier: TIER })
    assert.ok('refused' in started && started.refused === 'no_build')
    assert.match(started.message, message)
  }
  const nothing = `${socket}.none`
  const swarm = { ...(kind === 'swarm' ? await swarmSettings() : {}), MUSTER_SWARM_ENGINES: `none=unix://${nothing}` }
  const opening = openEngineDriver({
    ...{ data_dir, base_image: BASE_IMAGE },
    ...(kind === 'swarm' ? { swarm } : { socket: nothing }),
  })
  const message =
    kind === 'swarm' ? /MUSTER_SWARM_ENGINES responds \(none: / : /docker\.sock\.none: .*MUSTER_DOCKER_SOCKET/
  await assert.rejects(opening, message)
})

test('the driver of a data folder changes only when no lobby of the former one is open', async (t) => {
  const fixture = await openDriver(t, 'off')
  const build_folder = fixture.build({ run: '#!/bin/sh\nsleep 600\n' })
  useDriver(fixture.data_dir, 'process')
  const handle = await fixture.start({ build_folder, args: ['run'] })
  assert.throws(() => useDriver(fixture.data_dir, 'docker'), /1 lobbies of the process driver.*MUSTER_DRIVER=process/)
  useDriver(fixture.data_dir, 'process')
  await endNow(fixture.driver, handle)
  useDriver(fixture.data_dir, 'docker')
  useDriver(fixture.data_dir, 'docker')
})

async function endNow(driver: Awaited<ReturnType<typeof openDriver>>['driver'], handle: Handle): Promise<void> {
  await driver.stop(handle, 0)
  await driver.exit(handle)
}
