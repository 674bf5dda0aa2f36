// What an interrupted or killed run of tests leaves on the machine is removed: by the run itself, or by the next one.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../support/until.ts'
import { clearDataFolder } from './clear.ts'
import { groupNames } from './kernel.ts'
import { markIn, namesIn } from './run.ts'

const RUN = join(import.meta.dirname, '../run/main.ts')
const MARK = JSON.stringify(join(import.meta.dirname, 'run.ts'))
const KERNEL = JSON.stringify(join(import.meta.dirname, 'kernel.ts'))

/** Makes one thing of each kind, names them in a file beside itself, and blocks. */
const LEAVING = `
import { test } from 'node:test'
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { markedName, runMark } from ${MARK}
import { groupNames, markLink } from ${KERNEL}
test('leaves everything', () => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-left-'))
  // It is a daemon: it has left its parent, and its environment has no mark.
  const daemon = spawn('/bin/sh', ['-c', 'exec sleep 600 # --data-root ' + folder + '/data'],
    { detached: true, stdio: 'ignore', env: { HOME: folder + '/home' } })
  // Its environment has the mark, and nothing else names the run.
  const marked = spawn('sleep', ['600'], { detached: true, stdio: 'ignore', cwd: '/' })
  const things = { folder, pids: [daemon.pid, marked.pid], namespace: null, link: null, mount: null, groups: [] }
  if (process.env.TEST_LEAVES_MORE === 'yes') {
    things.namespace = markedName('left')
    execFileSync('ip', ['netns', 'add', things.namespace])
    const inside = spawn('ip', ['netns', 'exec', things.namespace, 'sleep', '600'], { detached: true, stdio: 'ignore', env: { PATH: process.env.PATH } })
    things.pids.push(inside.pid)
    things.link = 'mtl' + process.pid.toString(36)
    execFileSync('ip', ['link', 'add', things.link, 'type', 'bridge'])
    markLink(things.link, runMark())
    things.mount = join(folder, 'disk')
    mkdirSync(things.mount)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', things.mount])
    const [group] = groupNames([folder])
    for (const name of readdirSync('/sys/fs/cgroup')) {
      const path = join('/sys/fs/cgroup', name, group)
      try {
        if (name !== 'pids' && name !== 'memory') continue
        mkdirSync(join(path, 'lobby'), { recursive: true })
        writeFileSync(join(path, 'lobby', 'cgroup.procs'), String(inside.pid))
        things.groups.push(path)
      } catch {}
    }
  }
  writeFileSync(import.meta.dirname + '/things', JSON.stringify(things))
  for (;;) {}
})`

type Things = {
  folder: string
  pids: number[]
  namespace: string | null
  link: string | null
  mount: string | null
  groups: string[]
}
type TestRun = { run: ChildProcess; output: () => string; things: Things; end: Promise<unknown> }

/** Null: this machine lets a test make only processes and folders. */
function missing(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it needs root on Linux'
  if (spawnSync('ip', ['netns', 'list']).status !== 0) return 'ip is not installed (Debian: iproute2)'
  return null
}

async function startRun(
  t: TestContext,
  file_text: string,
  env: object = {},
): Promise<Omit<TestRun, 'things'> & { folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-leftovers-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'leaves.test.mjs')
  await writeFile(file, file_text)
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env
  const run = spawn(process.execPath, [RUN, file], { env: { ...rest, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [run.stdout, run.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  t.after(() => run.kill('SIGKILL'))
  return { run, output: () => output, end: once(run, 'close'), folder }
}

async function startLeavingRun(t: TestContext): Promise<TestRun> {
  const started = await startRun(t, LEAVING, { TEST_LEAVES_MORE: missing() === null ? 'yes' : 'no' })
  const file = join(started.folder, 'things')
  await until('the things that are left', () => {
    if (started.run.exitCode !== null) throw new Error(started.output())
    return existsSync(file)
  })
  const things = await until('their names', async () => {
    const text = await readFile(file, 'utf8')
    return text === '' ? null : (JSON.parse(text) as Things)
  })
  return { ...started, things }
}

/** The things that exist. */
function present({ folder, pids, namespace, link, mount, groups }: Things): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
  return [
    ...pids.filter((pid) => isThere(pid)).map((pid) => `process ${pid}`),
    ...groups.filter((path) => existsSync(path)),
    ...(existsSync(folder) ? [folder] : []),
    ...(existsSync(dirname(dirname(folder))) ? [dirname(dirname(folder))] : []),
    ...(namespace !== null && existsSync(`/run/netns/${namespace}`) ? [namespace] : []),
    ...(link !== null && existsSync(`/sys/class/net/${link}`) ? [link] : []),
    ...(mount !== null && mounts.includes(` ${mount} `) ? [mount] : []),
  ]
}

function isThere(pid: number): boolean {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

test('the next run removes all that a killed run left, and nothing of a run that lives', async (t) => {
  const [dead, living] = await Promise.all([startLeavingRun(t), startLeavingRun(t)])
  const of_living = present(living.things)
  assert.equal(present(dead.things).length, of_living.length)
  t.diagnostic(`${missing() ?? 'everything is made'}: ${of_living.join(' ')}`)
  // Its own children live on.
  dead.run.kill('SIGKILL')
  await once(dead.run, 'exit')
  assert.equal(present(dead.things).length, of_living.length)

  const next = await startRun(t, "import { test } from 'node:test'; test('passes', () => {})")
  await next.end
  assert.equal(next.run.exitCode, 0, next.output())
  assert.match(next.output(), /Removed what dead test runs left:/)
  assert.deepEqual(present(dead.things), [], next.output())
  assert.deepEqual(present(living.things), of_living, next.output())

  // A run that is interrupted removes its own.
  living.run.kill('SIGINT')
  await living.end
  assert.deepEqual(present(living.things), [], living.output())
})

test('a platform that was killed leaves no control group when its data folder is cleared', async (t) => {
  if (missing() !== null) return t.skip(missing() ?? '')
  const folder = await mkdtemp(join(tmpdir(), 'muster-cleared-'))
  t.after(() => rm(folder, { recursive: true }))
  const [group] = groupNames([folder])
  const root = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].find((path) => existsSync(join(path, 'cgroup.procs')))
  assert.ok(root !== undefined)
  const path = join(root, group!)
  spawnSync('mkdir', ['-p', join(path, 'lobby')])
  assert.ok(existsSync(path))
  await clearDataFolder(folder)
  assert.ok(!existsSync(path))
})

test('a name without a mark is of no run', () => {
  for (const name of ['mt-', 'mt-x', 'muster-0123456789ab-1', 'mtabcm', 'default'])
    assert.equal(markIn(name), null, name)
  assert.equal(markIn('mt-1a2-b3c-0-machine'), '1a2-b3c')
  assert.ok(namesIn('/no such folder').length === 0)
})
