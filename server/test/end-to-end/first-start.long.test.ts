// What a newcomer does: a clone, then `npm start` and nothing else.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { get } from '../edge/get.ts'
import { endProcessesOf, freeSettings, processesOf } from '../supervisor/started.ts'
import { personsPath } from '../support/persons-path.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** On a disk: a checkout with its packages is large. */
const DISK = '/var/tmp'
/** An install fetches hundreds of packages, unless npm's cache has them. */
const START_MS_MAX = 480_000

type Ended = { code: number | null }

test('npm start alone makes a platform of a fresh clone, and the next start installs nothing', async (t) => {
  const checkout = cloneOf(t)
  const data = join(checkout, '.muster')
  t.after(() => endProcessesOf(data))
  const settings = await freeSettings(data)
  const first = startAlone(checkout, settings)
  await first.ready()
  if (first.output().includes('npm cannot reach its registry')) {
    return t.skip('npm has the packages neither in its cache nor from its registry')
  }
  assert.match(first.output(), /Installing packages of \S+ with npm: installed after \d+ s\./)
  t.diagnostic(first.screen())
  const host = `localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const port = Number(settings.MUSTER_EDGE_HTTP_PORT)
  const page = await get({ port }, '/', { headers: { host: `arena.cdn.${host}` } })
  assert.equal(page.status, 200)
  await until('the hub to be built', async () => {
    const document = await (await fetch(`http://${host}/`)).text()
    return /<script type="module"[^>]* src="\/hub-assets\//.test(document)
  })
  assert.equal((await first.interrupt()).code, 0)
  assert.deepEqual(processesOf(data), [])

  const second = startAlone(checkout, settings)
  await second.ready()
  t.diagnostic(second.screen())
  assert.doesNotMatch(second.output(), /Installing packages|The hub is being built/)
  assert.equal((await second.interrupt()).code, 0)
})

/** With the files as they are, committed or not. PostgreSQL and lobbies run as other users, who must be able to enter it. */
function cloneOf(t: TestContext): string {
  const folder = mkdtempSync(join(DISK, 'muster-clone-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o755)
  const checkout = join(folder, 'muster')
  mkdirSync(checkout)
  const args = [
    '-c',
    `safe.directory=${ROOT.replace(/\/$/, '')}`,
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
  ]
  const names = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 }).split('\0')
  for (const name of names.filter((path) => path !== '' && existsSync(join(ROOT, path)))) {
    mkdirSync(join(checkout, dirname(name)), { recursive: true })
    cpSync(join(ROOT, name), join(checkout, name))
  }
  return checkout
}

/** As a person does it, without what npm passes to the scripts of this run. */
function startAlone(checkout: string, settings: Record<string, string>) {
  const { HOME, npm_config_cache, npm_config_registry } = process.env
  const npm_settings = { npm_config_prefer_offline: 'true', npm_config_cache, npm_config_registry }
  const child = spawn('npm', ['start'], {
    cwd: checkout,
    env: { HOME, PATH: personsPath(), ...npm_settings, ...settings },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const closed = once(child, 'close').then(([code]): Ended => ({ code: code as number | null }))
  return {
    output: () => output,
    screen: () => output.slice(output.indexOf('  Muster')),
    /** Ready, or ended because the registry is away. */
    async ready(): Promise<void> {
      const end_ms = performance.now() + START_MS_MAX
      while (!/^ready in /m.test(output)) {
        const ended = await Promise.race([closed, new Promise<null>((resolve) => setTimeout(resolve, 200, null))])
        if (ended !== null && output.includes('npm cannot reach its registry')) return
        assert.equal(ended, null, output)
        assert.ok(performance.now() < end_ms, output)
      }
    },
    interrupt(): Promise<Ended> {
      process.kill(-child.pid!, 'SIGINT')
      return closed
    },
  }
}
