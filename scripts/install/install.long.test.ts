import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { mountSmallDisk } from '../../server/test/support/small-disk.ts'
import { until } from '../../server/test/support/until.ts'
import {
  type Checkout,
  makeCheckout,
  NODE_PACKAGE,
  newFolder,
  readJson,
  runStep,
  startStep,
  writeJson,
} from './fixture.ts'

const RECORD = 'node_modules/.package-lock.json'
const LINK = 'node_modules/.bin/node'
/** Above the cost of starting Node itself. */
const COST_MS_MAX = 50
const COST_ROUNDS = 20
/** The step writes that it is missing before it asks for more. */
const TINY_DISK_BYTES = 64 * 1024 ** 2
/** More than npm's cache of the three packages takes. */
const FULL_CACHE_BYTES = 64 * 1024

/** A setting of the user: npm pauses between attempts. */
const ONE_ATTEMPT = { npm_config_fetch_retries: '0' }

type Lock = { packages: Record<string, { version?: string; link?: boolean }> }

test('a checkout without packages gets them and a Node, and then the step says and changes nothing', async (t) => {
  const checkout = await makeCheckout(t)
  const first = await runStep(checkout)
  assert.equal(first.status, 0, first.stderr)
  assert.match(first.stderr, /^Installing packages of checkout with npm\.\nInstalling .*: installed after \d+ s\.\n$/)
  requireInstalled(checkout)
  assert.equal(readlinkSync(join(checkout.root, LINK)), process.execPath, 'the Node of the user is new enough')
  assert.ok(!existsSync(join(checkout.root, 'runtime/node_modules')))
  const { mtimeMs } = statSync(join(checkout.root, RECORD))
  assert.deepEqual(await runStep(checkout), { status: 0, stderr: '' })
  assert.equal(statSync(join(checkout.root, RECORD)).mtimeMs, mtimeMs)
})

test('whatever differs from the lock is installed by the next run', async (t) => {
  const checkout = await makeCheckout(t)
  const { root } = checkout
  await runStep(checkout)
  const inRecord = (change: (packages: Lock['packages']) => void): void => {
    const record = readJson(root, RECORD) as Lock
    change(record.packages)
    writeJson(root, RECORD, record)
  }
  const differences: Record<string, () => void> = {
    'an install that was interrupted': () => rmSync(join(root, RECORD)),
    'a record that was cut off': () => writeFileSync(join(root, RECORD), '{"packages":'),
    'another version': () => inRecord((packages) => Object.assign(packages['node_modules/one']!, { version: '0.9.0' })),
    'a package that the lock names no longer': () =>
      inRecord((packages) => Object.assign(packages, { 'node_modules/former': { version: '1.0.0' } })),
    'a workspace without its link': () => inRecord((packages) => delete packages['node_modules/part']),
    'a package without its folder': () => {
      rmSync(join(root, 'node_modules/two'), { recursive: true })
      inRecord(() => undefined)
    },
  }
  for (const [name, make] of Object.entries(differences)) {
    make()
    const { status, stderr } = await runStep(checkout)
    assert.deepEqual([status, /: installed after/.test(stderr)], [0, true], `${name}: ${stderr}`)
    requireInstalled(checkout)
  }
})

test('packages for other systems, of omitted kinds and of the user are no difference', async (t) => {
  const checkout = await makeCheckout(t)
  const { root, env } = checkout
  await runStep(checkout)
  const lock = readJson(root, 'package-lock.json') as Lock
  Object.assign(lock.packages, {
    'node_modules/for-others': { version: '1.0.0', optional: true, os: ['!linux'] },
    'node_modules/for-arm': { version: '1.0.0', optional: true, cpu: 'none' },
    'node_modules/of-them': { version: '1.0.0', optional: true },
    'node_modules/tool': { version: '1.0.0', dev: true },
  })
  writeJson(root, 'package-lock.json', lock)
  const record = readJson(root, RECORD) as Lock
  Object.assign(record.packages, { 'node_modules/own': { version: '1.0.0', extraneous: true } })
  writeJson(root, RECORD, record)
  const omitting = { ...checkout, env: { ...env, npm_config_omit: 'dev' } }
  assert.deepEqual(await runStep(omitting), { status: 0, stderr: '' })
})

test('a Node that is too old for the platform is completed by the one of runtime/, without its headers', async (t) => {
  const checkout = await makeCheckout(t)
  const own = join(newFolder(t), 'node')
  writeFileSync(own, `#!/bin/sh\nexec "${process.execPath}" "$@"\n`, { mode: 0o755 })
  const env = { ...checkout.env, npm_node_execpath: own, npm_config_user_agent: 'npm/10.8.2 node/v20.19.0 linux' }
  const { status, stderr } = await runStep({ ...checkout, env })
  assert.equal(status, 0, stderr)
  assert.equal(readlinkSync(join(checkout.root, LINK)), `../../runtime/node_modules/${NODE_PACKAGE}/bin/node`)
  assert.equal(execFileSync(join(checkout.root, LINK), ['-p', '1 + 1'], { encoding: 'utf8' }), '2\n')
  assert.ok(!existsSync(join(checkout.root, 'runtime/node_modules', NODE_PACKAGE, 'include')))
  assert.deepEqual(await runStep({ ...checkout, env }), { status: 0, stderr: '' })
})

test('two installs at once: one waits, and each package is fetched once', async (t) => {
  const checkout = await makeCheckout(t)
  const { promise, resolve: release } = Promise.withResolvers<void>()
  checkout.registry.hold = promise
  const first = runStep(checkout)
  await until('npm to ask for a package', () => checkout.registry.asked.length > 0)
  const second = startStep(checkout)
  const ended = once(second, 'close')
  let stderr = ''
  second.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  await until('the second to wait', () => stderr !== '')
  assert.equal(second.exitCode, null)
  release()
  assert.equal((await first).status, 0)
  assert.deepEqual(await ended, [0, null])
  assert.equal(stderr, 'Another install is under way in this folder; waiting for its end.\n')
  requireInstalled(checkout)
  assert.deepEqual(checkout.registry.asked.sort(), ['one', 'two'])
})

test('an install that was killed is repaired by the next run', async (t) => {
  const checkout = await makeCheckout(t)
  const { promise, resolve: release } = Promise.withResolvers<void>()
  checkout.registry.hold = promise
  const child = startStep(checkout)
  await until('npm to ask for a package', () => checkout.registry.asked.length > 0)
  process.kill(-child.pid!, 'SIGKILL')
  release()
  const { status, stderr } = await runStep(checkout)
  assert.equal(status, 0, stderr)
  requireInstalled(checkout)
})

test('each obstacle is one sentence with the remedy', async (t) => {
  await t.test('a Node that is too old', async (t) => {
    const checkout = await makeCheckout(t)
    const preload = join(checkout.root, 'old.cjs')
    writeFileSync(preload, "Object.defineProperty(process.versions, 'node', { value: '18.20.4' })\n")
    requireSentence(
      await runStep(checkout, ['--require', preload]),
      /^Muster needs Node 20\.19 or newer, and this is 18\.20\.4: install /,
    )
  })

  await t.test('a Node of npm that lacks a library of the system', async (t) => {
    const checkout = await makeCheckout(t)
    const env = {
      ...checkout.env,
      npm_node_execpath: '/usr/bin/node',
      npm_config_user_agent: 'npm/10.8.2 node/v20.19.0 linux',
    }
    assert.equal((await runStep({ ...checkout, env })).status, 0)
    const says =
      'node: error while loading shared libraries: libatomic.so.1: cannot open shared object file: No such file'
    const node = join(checkout.root, 'runtime/node_modules', NODE_PACKAGE, 'bin/node')
    writeFileSync(node, `#!/bin/sh\necho '${says}' >&2\nexit 127\n`)
    rmSync(join(checkout.root, LINK))
    for (let run = 0; run < 2; run++) {
      const ended = await runStep({ ...checkout, env })
      requireSentence(ended, /^The Node that npm installed does not start here \(.*libatomic\.so\.1.*\): .*again\.$/)
    }
  })

  await t.test('no network', async (t) => {
    const checkout = await makeCheckout(t)
    const env = { ...checkout.env, ...ONE_ATTEMPT, npm_config_registry: 'http://127.0.0.1:9/' }
    // npm keeps the host of an address in the lock unless it is npm's own.
    const lock = readFileSync(join(checkout.root, 'package-lock.json'), 'utf8')
    writeFileSync(
      join(checkout.root, 'package-lock.json'),
      lock.replaceAll(checkout.registry.url, 'https://registry.npmjs.org'),
    )
    requireSentence(
      await runStep({ ...checkout, env }),
      /^npm cannot reach its registry http:\S+ \(ECONNREFUSED\): connect .*run the command again\.$/,
    )
  })

  await t.test('no lock file', async (t) => {
    const checkout = await makeCheckout(t)
    rmSync(join(checkout.root, 'package-lock.json'))
    requireSentence(await runStep(checkout), /package-lock\.json is missing, .*: restore it with "git checkout /)
  })

  await t.test('a manifest that the lock does not know', async (t) => {
    const checkout = await makeCheckout(t)
    const manifest = readJson(checkout.root, 'package.json') as { dependencies: Record<string, string> }
    manifest.dependencies.one = '2.0.0'
    writeJson(checkout.root, 'package.json', manifest)
    requireSentence(await runStep(checkout), /do not agree \(EUSAGE\): run "npm install"/)
  })

  await t.test('a package that is not the one of the lock', async (t) => {
    const checkout = await makeCheckout(t)
    const lock = readJson(checkout.root, 'package-lock.json') as Lock
    Object.assign(lock.packages['node_modules/one']!, { integrity: `sha512-${Buffer.alloc(64).toString('base64')}` })
    writeJson(checkout.root, 'package-lock.json', lock)
    requireSentence(
      await runStep({ ...checkout, env: { ...checkout.env, ...ONE_ATTEMPT } }),
      /not the one that package-lock\.json names \(EINTEGRITY\): run "npm cache clean/,
    )
  })

  await t.test('a folder that cannot be written', async (t) => {
    const checkout = await readOnlyCheckout(t)
    if (checkout === null) return
    requireSentence(
      await runStep(checkout),
      /^The folder \S+ cannot be written \((EROFS|EACCES)\), .*: make it writable /,
    )
  })

  await t.test('a disk that is too small', async (t) => {
    const disk = await mountSmallDisk(t, TINY_DISK_BYTES)
    if (disk === null) return
    try {
      const checkout = await makeCheckout(t, disk.folder)
      requireSentence(
        await runStep(checkout),
        /^The disk of \S+ has \d+ MB free, and the packages need 900 MB: free some space, /,
      )
    } finally {
      await disk.unmount()
    }
  })

  await t.test('a disk that becomes full', async (t) => {
    const disk = await mountSmallDisk(t, FULL_CACHE_BYTES)
    if (disk === null) return
    try {
      const checkout = await makeCheckout(t)
      const cache = join(disk.folder, 'cache')
      mkdirSync(cache)
      await disk.fill()
      const env = { ...checkout.env, npm_config_cache: cache }
      requireSentence(
        await runStep({ ...checkout, env }),
        /^The disk is full \(ENOSPC\) where npm writes, .*: free some space, /,
      )
      const again = await runStep(checkout)
      assert.equal(again.status, 0, again.stderr)
      requireInstalled(checkout)
    } finally {
      await disk.unmount()
    }
  })
})

test(`where everything is installed the step costs less than ${COST_MS_MAX} ms of a processor`, async (t) => {
  const { root, env } = await makeCheckout(t)
  // The locks of this repository, which are the large ones.
  const real = join(import.meta.dirname, '../..')
  for (const name of ['package-lock.json', 'package.json']) {
    writeFileSync(join(root, name), readFileSync(join(real, name)))
  }
  mkdirSync(join(root, 'node_modules/.bin'), { recursive: true })
  writeFileSync(join(root, RECORD), readFileSync(join(real, RECORD)))
  const step = join(root, 'scripts/install/main.cjs')
  const { ino, size, mtimeMs } = statSync(join(root, 'package-lock.json'))
  const record = statSync(join(root, RECORD))
  const agreed = [
    `${process.platform} ${process.arch}`,
    `${ino} ${size} ${mtimeMs}`,
    `${record.ino} ${record.size} ${record.mtimeMs}`,
  ]
  writeFileSync(join(root, 'node_modules/.agreed'), `${agreed.join('\n')}\n`)
  // Processor time, because the machine may be loaded.
  const measure = (args: readonly string[]): number => {
    const before_ms = childrenMs()
    const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''])
    return childrenMs() - before_ms
  }
  let [bare_ms, whole_ms] = [0, 0]
  for (let round = 0; round < COST_ROUNDS; round++) {
    bare_ms += measure(['-e', '0'])
    whole_ms += measure([step])
  }
  const cost_ms = (whole_ms - bare_ms) / COST_ROUNDS
  t.diagnostic(`${cost_ms.toFixed(1)} ms beside ${(bare_ms / COST_ROUNDS).toFixed(1)} ms for Node itself`)
  assert.ok(cost_ms < COST_MS_MAX, `${cost_ms} ms`)
})

/** Processor time of the children that have ended. Linux counts it in hundredths of a second. */
function childrenMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[13]) + Number(fields[14])) * 10
}

test('every script of package.json begins with the step, and names of versions are the same everywhere', () => {
  const root = join(import.meta.dirname, '../..')
  const { scripts, engines } = readJson(root, 'package.json') as {
    scripts: Record<string, string>
    engines: { node: string }
  }
  // npm runs these beside `npm pack`.
  const { prepack: _prepack, postpack: _postpack, ...others } = scripts
  for (const [name, script] of Object.entries(others)) {
    // The shell keeps the place of `node` that it has found once.
    assert.ok(script.startsWith('node scripts/install/main.cjs && hash -r && '), name)
  }
  const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')
  const [, major, minor] = /OLDEST = \[(\d+), (\d+)\]/.exec(textOf('scripts/install/main.cjs')) ?? []
  assert.equal(engines.node, `>=${major}.${minor}`)
  const [, platform_major] = /PLATFORM_NODE_MAJOR = (\d+)/.exec(textOf('scripts/install/install.js')) ?? []
  assert.match(textOf('cli/src/platform-node.ts'), new RegExp(`NODE_MAJOR_MIN = ${platform_major}\\n`))
})

function requireInstalled({ root }: Checkout): void {
  for (const path of [RECORD, 'node_modules/one/index.js', 'node_modules/two/index.js', 'node_modules/part', LINK]) {
    assert.ok(existsSync(join(root, path)), path)
  }
}

/** The lines before it are those of the progress. */
function requireSentence({ status, stderr }: { status: number | null; stderr: string }, sentence: RegExp): void {
  const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('Installing packages of '))
  assert.equal(lines.length, 1, stderr)
  assert.match(lines[0]!, sentence)
  assert.equal(status, 1)
}

/** Root may write everywhere but on a file system that is read-only. */
async function readOnlyCheckout(t: TestContext): Promise<Checkout | null> {
  if (process.getuid?.() !== 0) {
    const checkout = await makeCheckout(t)
    chmodSync(checkout.root, 0o555)
    t.after(() => chmodSync(checkout.root, 0o755))
    return checkout
  }
  const disk = await mountSmallDisk(t, TINY_DISK_BYTES)
  if (disk === null) return null
  t.after(() => disk.unmount())
  const checkout = await makeCheckout(t, disk.folder)
  execFileSync('mount', ['-o', 'remount,ro', disk.folder])
  return checkout
}
