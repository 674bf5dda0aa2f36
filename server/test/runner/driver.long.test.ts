import assert from 'node:assert'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { openCgroups } from '../../src/runner/drivers/cgroups.ts'
import type { Handle } from '../../src/runner/drivers/driver.ts'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import {
  commandLine,
  howOf,
  isEngine,
  needsOf,
  openDriver,
  SANDBOXES,
  TIER,
  VARIANTS,
  type Variant,
} from './driver-fixture.ts'

const HELD_BYTES = 64 * 1024 ** 2
const BURNT_MS = 500

const WHERE = {
  required: 'in bubblewrap',
  off: 'without a sandbox',
  docker: 'in a container',
  podman: 'in a container of Podman',
  swarm: 'in a task of a Swarm',
} as const

function promise(
  name: string,
  run: (t: TestContext, variant: Variant) => Promise<void>,
  variants: readonly Variant[] = VARIANTS,
): void {
  for (const variant of variants) {
    test(`${name} (${WHERE[variant]})`, async (t) => {
      const missing = lacking(...needsOf(variant))
      return missing === null ? run(t, variant) : t.skip(missing)
    })
  }
}

function hasCgroups(): boolean {
  const found = openCgroups('muster-test-probe')
  if ('unavailable' in found) return false
  found.close()
  return true
}

promise(
  'a lobby runs in its build with its arguments and environment, and its two streams are logged apart',
  async (t, variant) => {
    const fixture = await openDriver(t, variant)
    const build_folder = fixture.build({
      'server.js': `
      console.log('cwd-has ' + require('fs').readdirSync('.').join())
      console.log('env ' + JSON.stringify(process.env))
      console.log('argv ' + JSON.stringify(process.argv.slice(2)))
      console.error('to stderr')
      for (const folder of [process.env.HOME, process.env.TMPDIR]) require('fs').writeFileSync(folder + '/mine', 'x')
      require('fs').writeFileSync('/dev/stdout', 'by name\\n')`,
    })
    const env = { PLATFORM_TOKEN: 'a.b.c', QUOTED: `it's "$(id)" \`x\` \\ \n é`, EMPTY: '' }
    const args = ['node', 'server.js', '--flag', "a b'c", '$(id)', '']
    const handle = await fixture.start({ build_folder, args, env })
    assert.deepStrictEqual(howOf(await fixture.ended(handle)), { exit_code: 0, reason: 'exit' })
    await fixture.line(handle, /^cwd-has server\.js$/)
    await fixture.line(handle, /^by name$/)
    const [, seen = ''] = await fixture.line(handle, /^env (.*)$/)
    const { PWD, _, ...told } = JSON.parse(seen) as Record<string, string>
    const of_podman = variant === 'podman' ? ['TERM', 'container'] : []
    const of_engine = isEngine(variant) ? ['HOSTNAME', ...of_podman] : []
    const names = ['EMPTY', 'HOME', ...of_engine, 'PATH', 'PLATFORM_TOKEN', 'QUOTED', 'TMPDIR']
    assert.deepStrictEqual(Object.keys(told).sort(), names.sort())
    assert.strictEqual(told.QUOTED, env.QUOTED)
    const [, argv = ''] = await fixture.line(handle, /^argv (.*)$/)
    assert.deepStrictEqual(JSON.parse(argv), args.slice(2))
    const errors = await until('stderr is kept', async () => {
      const lines = await fixture.driver.logs(handle.lobby_id, 'stderr', 10)
      return lines.length > 0 ? lines : null
    })
    assert.deepStrictEqual(
      errors.map(({ bytes }) => bytes.toString()),
      ['to stderr'],
    )
  },
)

promise('exit codes and signals are distinguished, and a repeated call returns the same exit', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({ run: '#!/bin/sh\neval "$1"\n' })
  for (const [script, exit_code, reason] of [
    ['exit 0', 0, 'exit'],
    ['exit 1', 1, 'exit'],
    ['exit 127', 127, 'exit'],
    ['kill -ABRT $$', 134, 'signal'],
    ['kill -SEGV $$', 139, 'signal'],
    ['kill -KILL $$', 137, 'signal'],
  ] as const) {
    const handle = await fixture.start({ build_folder, args: ['run', script] })
    assert.deepStrictEqual(howOf(await fixture.ended(handle)), { exit_code, reason }, script)
    assert.deepStrictEqual(howOf(await fixture.driver.exit(handle)), { exit_code, reason }, script)
    assert.deepStrictEqual(howOf(await fixture.driver.exitOf(handle.lobby_id)), { exit_code, reason }, script)
  }
})

promise('an exit that a full disk could not store is returned once there is room', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({ run: '#!/bin/sh\nread -r line\n' })
  const handle = await fixture.start({ build_folder, args: ['run'] })
  // As on a full disk, the file of the exit cannot be written.
  const blocked = join(fixture.data_dir, 'lobbies', handle.lobby_id, 'ended.json.new')
  mkdirSync(blocked)
  const refusal = await until('the exit cannot be written', () =>
    fixture.driver.exit(handle).then(
      () => null,
      (error: NodeJS.ErrnoException) => error,
    ),
  )
  assert.strictEqual(refusal.code, 'EISDIR')
  rmdirSync(blocked)
  assert.deepStrictEqual(howOf(await fixture.ended(handle)), { exit_code: 1, reason: 'exit' })
})

promise('a program that cannot be started has a reason and a line in the log', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({
    data: 'not a program',
    script: '#!/no/such/interpreter\n',
    broken: '#!/bin/sh\necho "x: error while loading shared libraries: libgame.so: cannot open" >&2; exit 127\n',
  })
  for (const [program, reason] of [
    ['./nothing', 'no_such_file'],
    ['nothing', 'no_such_file'],
    ['/usr/bin/nothing', 'no_such_file'],
    ['../../../../../bin/sh', 'no_such_file'],
    // Of an image all files are searched, of the host only the folders of programs.
    [isEngine(variant) ? '/bin' : '/etc/passwd', 'no_such_file'],
    ['.', 'no_such_file'],
    ['data', 'not_executable'],
    // The files of a container image are only known to its engine, which starts it and reports the end.
    ...(isEngine(variant) ? [] : ([['script', 'missing_library']] as const)),
  ] as const) {
    const lobby_id = newId(Date.now())
    const started = await fixture.driver.start({ lobby_id, build_folder, args: [program], env: {}, tier: TIER })
    assert.ok('refused' in started && started.refused === reason, program)
    const [line] = await fixture.driver.logs(lobby_id, 'stderr', 10)
    assert.match(line?.bytes.toString() ?? '', /^\[muster\] ".*"/)
    if (program === 'nothing' && !isEngine(variant)) {
      assert.match(String(line!.bytes), /searched in the build, and in \/usr\/local\/bin, .*, \/usr\/games\./)
    }
    assert.deepStrictEqual(howOf(await fixture.driver.exitOf(lobby_id)), { exit_code: null, reason })
  }
  for (const program of isEngine(variant) ? ['script', 'broken'] : ['broken']) {
    const handle = await fixture.start({ build_folder, args: [program] })
    assert.strictEqual((await fixture.ended(handle)).reason, 'missing_library', program)
  }
})

promise('a lobby that reaches its limit of memory or of processes ends with that reason', async (t, variant) => {
  if (!hasCgroups()) return t.skip('needs writable control groups')
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({
    'hog.js': 'const all = []; for (;;) all.push(Buffer.alloc(1 << 22, 1))',
    fork: '#!/bin/sh\nn=0\nwhile [ $n -lt 200 ]; do sleep 60 & n=$((n+1)); done\nexit 0\n',
  })
  const tier = { ...TIER, memory_bytes: 96 * 1024 ** 2 }
  const hog = await fixture.start({ build_folder, args: ['node', 'hog.js'], tier })
  assert.deepStrictEqual(howOf(await fixture.ended(hog)), { exit_code: 137, reason: 'oom' })
  if (!isEngine(variant)) {
    const said = (await fixture.driver.logs(hog.lobby_id, 'stderr', 5)).map(({ bytes }) => String(bytes)).join('\n')
    assert.match(
      said,
      /limit of memory \(oom\): its tier has 96 MB, and used up to 9\d MB\. .* `tier` of the game mode/,
    )
  }
  const fork = await fixture.start({ build_folder, args: ['fork'], tier: { ...TIER, pids_max: 20 } })
  assert.strictEqual((await fixture.ended(fork)).reason, 'pids')
  await fixture.driver.sweep()
  for (const { lobby_id } of [fork, hog])
    await until('it is gone', async () => (await fixture.processesOf(lobby_id)).length === 0)
})

promise(
  'the exit of a run includes its processor time with that of its children, and does not change',
  async (t, variant) => {
    if (!hasCgroups()) return t.skip('needs writable control groups')
    const fixture = await openDriver(t, variant)
    const build_folder = fixture.build({
      'burn.js': `
      const burnt = ({ user, system } = process.cpuUsage()) => (user + system) / 1e3
      while (burnt() < ${BURNT_MS}) for (let i = 0; i < 1e7; i++);
      console.log('burnt')
      process.stdin.once('data', () => process.exit())`,
      'parent.js': "require('child_process').execFileSync(process.execPath, ['burn.js'], { stdio: 'inherit' })",
      'idle.js': `setTimeout(() => console.log('burnt'), ${BURNT_MS}); process.stdin.once('data', () => process.exit())`,
    })
    const used: Record<string, number> = {}
    for (const program of ['burn.js', 'parent.js', 'idle.js']) {
      const handle = await fixture.start({ build_folder, args: ['node', program], has_input: true })
      await fixture.line(handle, /^burnt$/)
      // A Swarm counts up to the last sample of a lobby.
      await fixture.driver.usage([handle])
      await fixture.driver.write(handle.lobby_id, 'end', 'note')
      const exit = await fixture.ended(handle)
      assert.deepStrictEqual(howOf(exit), { exit_code: 0, reason: 'exit' })
      used[program] = exit.cpu_ms ?? -1
      await fixture.driver.sweep()
      assert.deepStrictEqual(await fixture.driver.exitOf(handle.lobby_id), exit)
    }
    const { 'burn.js': burnt = 0, 'parent.js': with_child = 0, 'idle.js': idle = 0 } = used
    assert.ok(burnt >= BURNT_MS && burnt < 10 * BURNT_MS, JSON.stringify(used))
    assert.ok(with_child >= BURNT_MS && with_child < 10 * BURNT_MS, JSON.stringify(used))
    assert.ok(idle > 0 && idle < burnt, JSON.stringify(used))
  },
)

promise('the usage of a run includes its children, with and without a control group', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({
    'burn.js': `
      const burnt = ({ user, system } = process.cpuUsage()) => (user + system) / 1e3
      while (burnt() < ${BURNT_MS}) for (let i = 0; i < 1e7; i++);
      const held = Buffer.alloc(${HELD_BYTES}, 1)
      console.log('burnt')
      setInterval(() => held.fill(1), 60_000)`,
    'parent.js': "require('child_process').spawn(process.execPath, ['burn.js'], { stdio: 'inherit' })",
  })
  const handle = await fixture.start({ build_folder, args: ['node', 'parent.js'] })
  await fixture.line(handle, /burnt/)
  for (const group of [handle.group, null]) {
    const usage = await fixture.driver.usage([{ ...handle, group }])
    const { cpu_ms, memory_bytes } = usage.get(handle.lobby_id)!
    assert.ok(cpu_ms >= BURNT_MS && cpu_ms < 10 * BURNT_MS, `${group}: ${cpu_ms} ms`)
    assert.ok(memory_bytes >= HELD_BYTES && memory_bytes < 10 * HELD_BYTES, `${group}: ${memory_bytes} bytes`)
  }
  await fixture.driver.stop(handle, 0)
  assert.equal((await fixture.driver.usage([handle, { ...handle, group: null }])).size, 0)
})

promise('a stopped lobby gets SIGTERM, and SIGKILL when it ignores it', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({
    'polite.js':
      "process.on('SIGTERM', () => { console.log('bye'); process.exit(7) }); setInterval(() => {}, 1e3); console.log('up')",
    'deaf.js': "process.on('SIGTERM', () => console.log('no')); setInterval(() => {}, 1e3); console.log('up')",
  })
  const polite = await fixture.start({ build_folder, args: ['node', 'polite.js'] })
  const deaf = await fixture.start({ build_folder, args: ['node', 'deaf.js'] })
  for (const handle of [polite, deaf]) await fixture.line(handle, /^up$/)
  await fixture.driver.stop(polite, 10_000)
  assert.deepStrictEqual(howOf(await fixture.driver.exit(polite)), { exit_code: 7, reason: 'exit' })
  await fixture.line(polite, /^bye$/)
  const stopped = fixture.driver.stop(deaf, 60_000)
  await fixture.line(deaf, /^no$/)
  assert.strictEqual(await fixture.driver.exit(deaf), null)
  // A second call shortens the first.
  await fixture.driver.stop(deaf, 0)
  await stopped
  assert.deepStrictEqual(howOf(await fixture.driver.exit(deaf)), { exit_code: 137, reason: 'signal' })
  await fixture.driver.stop(deaf, 0)
  assert.deepStrictEqual(await fixture.driver.list(), [])
})

promise('a lobby is ended even before its program has started', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({ run: '#!/bin/sh\nsleep 60\n' })
  const handle = await fixture.start({ build_folder, args: ['run'] })
  await fixture.driver.stop(handle, 0)
  assert.notStrictEqual(await fixture.driver.exit(handle), null)
  await until('it is gone', async () => (await fixture.processesOf(handle.lobby_id)).length === 0)
})

promise('a lobby is started only once', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({ run: '#!/bin/sh\nexit 0\n' })
  const handle = await fixture.start({ build_folder, args: ['run'] })
  await assert.rejects(fixture.start({ lobby_id: handle.lobby_id, build_folder, args: ['run'] }))
  await fixture.ended(handle)
  await assert.rejects(fixture.start({ lobby_id: handle.lobby_id, build_folder, args: ['run'] }))
})

promise('a secret is on no command line', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const build_folder = fixture.build({ 'up.js': "setInterval(() => {}, 1e3); console.log('up')" })
  const handle = await fixture.start({
    build_folder,
    args: ['node', 'up.js'],
    env: { PLATFORM_TOKEN: 'canary-of-the-token' },
  })
  await fixture.line(handle, /^up$/)
  const lines = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => commandLine(pid) ?? [])
  assert.ok(lines.some((line) => line.includes(isEngine(variant) ? 'up.js' : handle.lobby_id)))
  assert.ok(!lines.some((line) => line.includes('canary-of-the-token')))
  for (const name of readdirSync(join(fixture.data_dir, 'lobbies', handle.lobby_id))) {
    if (/log|json|status|launched/.test(name)) {
      const content = readFileSync(join(fixture.data_dir, 'lobbies', handle.lobby_id, name), 'latin1')
      assert.ok(!content.includes('canary-of-the-token'), name)
    }
  }
})

promise(
  'a lobby with a terminal writes to one, and keeps its lines, input, signals and exit code',
  async (t, variant) => {
    const fixture = await openDriver(t, variant)
    const { driver } = fixture
    const build_folder = fixture.build({
      'terminal.js': `
      const { stdin, stdout, stderr } = process
      console.log('terminals ' + [stdin, stdout, stderr].map(({ isTTY }) => isTTY === true))
      console.log('\\x1b[31mred\\x1b[0m')
      console.error('to stderr')
      require('readline').createInterface({ input: stdin, terminal: false }).on('line', (line) => console.log('read ' + line))
      stdin.on('end', () => console.log('end of input'))
      process.on('SIGTERM', () => {
        for (let line = 0; line < 5_000; line++) console.log('last ' + line)
        process.exitCode = 7
        stdin.destroy()
        clearInterval(timer)
      })
      const timer = setInterval(() => {}, 1_000)
      console.log('up ' + 'x'.repeat(500))`,
      'deaf.js': "process.on('SIGTERM', () => console.log('no')); setInterval(() => {}, 1e3); console.log('up')",
    })
    const start = (program: string, has_input: boolean) =>
      fixture.start({ build_folder, args: ['node', program, "it's $HOME"], has_input, has_terminal: true })
    const handle = await start('terminal.js', true)
    await fixture.line(handle, /^up x{500}$/)
    assert.equal(await driver.write(handle.lobby_id, 'say "hi"', 'input by ada'), 'written')
    await fixture.line(handle, /^read say "hi"$/)
    const lines = (await driver.logs(handle.lobby_id, 'stdout', 10)).map(({ bytes }) => bytes.toString())
    assert.deepEqual(lines.slice(0, 3), ['terminals true,true,true', 'red', 'to stderr'])
    await driver.stop(handle, 20_000)
    assert.deepStrictEqual(howOf(await fixture.ended(handle)), { exit_code: 7, reason: 'exit' })
    await fixture.line(handle, /^last 4999$/)
    assert.ok(!(await driver.logs(handle.lobby_id, 'stdout', 10)).some(({ bytes }) => bytes.includes('end of input')))

    const deaf = await start('deaf.js', false)
    await fixture.line(deaf, /^up$/)
    await driver.stop(deaf, 0)
    assert.deepStrictEqual(howOf(await fixture.ended(deaf)), { exit_code: 137, reason: 'signal' })
    assert.deepEqual(await fixture.processesOf(deaf.lobby_id), [])
  },
)

promise('lines are written to the standard input of a lobby that allows it, and of no other', async (t, variant) => {
  const fixture = await openDriver(t, variant)
  const { driver } = fixture
  const build_folder = fixture.build({
    'reads.js': `
      require('readline').createInterface({ input: process.stdin }).on('line', (line) => console.log('read ' + line))
      process.stdin.on('end', () => console.log('end'))
      console.log('up')`,
    'deaf.js': `
      console.log('stdin ' + require('fs').readlinkSync('/proc/self/fd/0'))
      process.on('SIGUSR2', () => process.stdin.resume())
      setInterval(() => {}, 1_000)`,
  })
  const start = (program: string, has_input: boolean) =>
    fixture.start({ build_folder, args: ['node', program], has_input })
  const reader = await start('reads.js', true)
  const long = 'ü'.repeat(1_000)
  for (const line of ['first', 'stop "$(id)"', '', long]) {
    assert.equal(await driver.write(reader.lobby_id, line, `input by ada: ${line}`), 'written')
    await fixture.line(reader, new RegExp(`^read ${line.replace(/[$()]/g, '\\$&')}$`))
  }
  const [noted] = await driver.logs(reader.lobby_id, 'stderr', 10)
  assert.equal(noted?.bytes.toString(), '[muster] input by ada: first')

  const deaf = await start('deaf.js', true)
  await fixture.line(deaf, /^stdin (?!\/dev\/null$)/)
  let written = 0
  while ((await driver.write(deaf.lobby_id, long, 'note')) === 'written') written++
  // The engine has buffers of its own before the pipe.
  const written_max = isEngine(variant) ? 400 : 32
  assert.ok(written >= 16 && written <= written_max, `the pipe takes 64 KiB, and then no line: ${written} lines`)
  assert.equal(
    (await driver.logs(deaf.lobby_id, 'stderr', 1_000)).length,
    written,
    'a line that was not written is not noted',
  )

  const closed = await start('deaf.js', false)
  await fixture.line(closed, /^stdin \/dev\/null$/)
  assert.equal(await driver.write(closed.lobby_id, 'line', 'note'), 'not_running')

  await driver.stop(reader, 0)
  await fixture.ended(reader)
  assert.equal(await driver.write(reader.lobby_id, 'line', 'note'), 'not_running')
  if (isEngine(variant)) return
  const pipes = join(fixture.data_dir, 'lobbies', '.input-pipes')
  await until('the pipe of the ended lobby is removed', async () => {
    await driver.sweep()
    return !existsSync(join(pipes, reader.lobby_id))
  })
  assert.deepEqual(readdirSync(pipes), [deaf.lobby_id])
})

test('closing a driver waits for a sweep, so that nothing writes to the disk afterwards', async (t) => {
  const { driver, build } = await openDriver(t, 'off')
  const build_folder = build({ data: 'not a program' })
  for (let count = 0; count < 500; count++) {
    await driver.start({ lobby_id: newId(Date.now()), build_folder, args: ['nothing'], env: {}, tier: TIER })
  }
  let is_swept = false
  const sweeping = driver.sweep().then(() => {
    is_swept = true
  })
  await driver.close({ logger: 'keep' })
  assert.ok(is_swept)
  await sweeping
})

test('in bubblewrap a lobby sees its build, and no file of the platform or of other lobbies', async (t) => {
  const missing = lacking('bwrap')
  if (missing !== null) return t.skip(missing)
  const fixture = await openDriver(t, 'required')
  writeFileSync(join(fixture.data_dir, 'secret'), 'canary', { mode: 0o666 })
  const other = fixture.build({ secret: 'canary' })
  const build_folder = fixture.build({
    look: `#!/bin/sh
      ls -l /proc/$$/fd
      cat "$1/secret" && echo LEAK data; cat "$2/secret" && echo LEAK build
      ls "$1" && echo LEAK listing; ls /root && echo LEAK root; ls /home && echo LEAK home; ls /run && echo LEAK run
      cat /proc/1/environ | tr '\\0' '\\n' | grep -a CANARY_OF_THE_PLATFORM && echo LEAK environ
      echo x > /build/look && echo LEAK write build; echo x > /new && echo LEAK write root
      echo x > /usr/bin/new && echo LEAK write usr; mkdir /dev/new && echo LEAK write dev
      kill -0 "$3" && echo LEAK kill; unshare -U true && echo LEAK userns; mount -t tmpfs x /tmp && echo LEAK mount
      head -c 100000000 /dev/zero > /tmp/fill && echo LEAK tmp; head -c 100000000 /dev/zero > /dev/shm/fill && echo LEAK shm
      head -c 100000000 /dev/zero > "$HOME/fill" && echo LEAK scratch
      echo "processes $(ls /proc | grep -c '^[0-9]')"
      grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status
      echo done`,
  })
  process.env.CANARY_OF_THE_PLATFORM = '1'
  t.after(() => delete process.env.CANARY_OF_THE_PLATFORM)
  const args = ['look', fixture.data_dir, other, String(process.pid)]
  const handle = await fixture.start({ build_folder, args })
  await fixture.line(handle, /^done$/)
  await fixture.ended(handle)
  const lines = (await fixture.driver.logs(handle.lobby_id, 'stdout', 1_000)).map(({ bytes }) => bytes.toString())
  assert.deepStrictEqual(
    lines.filter((line) => line.includes('LEAK') || line.includes('canary')),
    [],
  )
  // The process that started the test may have left files open. The lobby must not inherit them.
  const files = lines.flatMap((line) => /(\d+ -> .*)$/.exec(line)?.[1] ?? [])
  assert.ok(files.length >= 3)
  assert.deepStrictEqual(
    files.filter((line) => !/^[12] -> |-> \/dev\/null$|-> \/build\/look$/.test(line)),
    [],
  )
  const processes = Number(lines.find((line) => line.startsWith('processes'))?.split(' ')[1])
  assert.ok(processes <= 5)
  assert.ok(lines.includes('CapEff:\t0000000000000000'))
  assert.ok(lines.includes('CapBnd:\t0000000000000000'))
  assert.ok(lines.includes('NoNewPrivs:\t1'))
})

test('the writable folder is a disk of the size of the tier, and ends with the lobby', async (t) => {
  const missing = lacking('root', 'bwrap')
  if (missing !== null) return t.skip(missing)
  const fixture = await openDriver(t, 'required')
  const attached = (): string[] => execFileSync('losetup', ['--all'], { encoding: 'utf8' }).split('\n')
  const disks = (): string[] => attached().filter((line) => line.includes(fixture.data_dir))
  const namesOf = (lines: readonly string[]): string[] => lines.map((line) => line.split(':')[0]!).sort()
  const diskOf = ({ pid }: Handle): string =>
    /^(\/dev\/loop\d+) /m.exec(readFileSync(`/proc/${pid}/mounts`, 'utf8'))![1]!
  const build_folder = fixture.build({
    fill: `#!/bin/sh
      cat "$HOME/a/given"; stat -c 'mode %a' "$HOME"
      head -c 1000000 /dev/zero > "$HOME/first" && echo fits
      head -c 2000000 /dev/zero > "$HOME/second" || echo full
      rm "$HOME/first" && head -c 500000 /dev/zero > "$HOME/third" && echo room
      for i in $(seq 10000); do true > "$HOME/$i" || { echo inodes; break; }; done
      echo done; sleep 60`,
  })
  const disk_bytes = 2 ** 22
  const files = [{ path: 'a/given', content: 'given\n' }]
  const handle = await fixture.start({
    build_folder,
    args: ['fill'],
    files,
    tier: { ...TIER, disk_bytes: 3 * 2 ** 20 },
  })
  const other = await fixture.start({ build_folder, args: ['fill'], files, tier: { ...TIER, disk_bytes } })
  for (const one of [handle, other]) await fixture.line(one, /^done$/)
  const kept = await fixture.driver.logs(handle.lobby_id, 'stdout', 100)
  const lines = kept.map(({ bytes }) => bytes.toString())
  assert.deepEqual(lines, ['given', 'mode 700', 'fits', 'full', 'room', 'inodes', 'done'])
  const used = [diskOf(handle), diskOf(other)]
  assert.equal(new Set(used).size, 2, 'each has a disk of its own')
  // The next of this size gets one that was made ahead, just as empty.
  await until('a disk is made ahead, and no file has a name', () => {
    return disks().length > 2 && disks().every((line) => line.includes('(deleted)'))
  })
  const new_folder = join(fixture.data_dir, 'lobbies', '.platform', 'new-disks')
  await until('the spare monitors wait', () => readdirSync(new_folder).length === 0)
  const made = namesOf(disks()).filter((name) => !used.includes(name))
  const next = await fixture.start({ build_folder, args: ['fill'], files, tier: { ...TIER, disk_bytes } })
  await fixture.line(next, /^done$/)
  assert.ok(made.includes(diskOf(next)), `${diskOf(next)} was made ahead: ${made}`)
  const next_lines = (await fixture.driver.logs(next.lobby_id, 'stdout', 100)).map(({ bytes }) => bytes.toString())
  assert.deepEqual(next_lines.slice(0, 3), ['given', 'mode 700', 'fits'])
  // By their files: a device that is free again gets the next spare disk.
  const last = disks().filter((line) => [...used, diskOf(next)].includes(line.split(':')[0]!))
  assert.equal(last.length, 3)
  await fixture.driver.stop(next, 0)
  // Killed with its monitor, as by a crash.
  process.kill(handle.pid, 'SIGKILL')
  await fixture.ended(handle)
  await fixture.driver.stop(other, 0)
  await until('no disk of a lobby is left', () => !disks().some((line) => last.includes(line)))
  await fixture.driver.close({ logger: 'keep' })
  await until('no disk is left', () => disks().length === 0)
})

test('as root every lobby has its own uid, which is not the platform’s', async (t) => {
  const missing = lacking('root')
  if (missing !== null) return t.skip(missing)
  for (const sandbox of SANDBOXES) {
    if (sandbox === 'required' && lacking('bwrap') !== null) continue
    const fixture = await openDriver(t, sandbox)
    const build_folder = fixture.build({ run: '#!/bin/sh\necho up; sleep 60\n' })
    const handles = [
      await fixture.start({ build_folder, args: ['run'] }),
      await fixture.start({ build_folder, args: ['run'] }),
    ]
    const uids = new Set<number>()
    for (const handle of handles) {
      await fixture.line(handle, /^up$/)
      const status = readFileSync(join(fixture.data_dir, 'lobbies', handle.lobby_id, 'status'), 'utf8')
      const child = /"child-pid": (\d+)/.exec(status)?.[1]
      const uid = /^Uid:\t(\d+)\t(\d+)/m.exec(readFileSync(`/proc/${child}/status`, 'utf8'))
      assert.strictEqual(Number(uid?.[1]), handle.uid)
      assert.strictEqual(uid?.[2], uid?.[1])
      uids.add(Number(uid?.[1]))
    }
    assert.strictEqual(uids.size, 2)
    assert.ok([...uids].every((uid) => uid >= 2_100_000_000))
  }
})
