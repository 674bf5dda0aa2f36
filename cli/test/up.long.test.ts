// muster up: one command from an empty folder to a game that can be played.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { endProcessesOf, processesOf } from '../../server/test/supervisor/started.ts'
import { until } from '../../server/test/support/until.ts'
import { createMuster, type Muster } from './program.ts'

const ARGS = ['up', '--template', 'static', '--name', 'hello']

test('muster up makes, starts and deploys everything, and a second one continues with the same data', async (t) => {
  const muster = createMuster(t)
  // PostgreSQL, which is another user, passes through.
  chmodSync(muster.cwd, 0o711)
  const folder = join(muster.cwd, 'empty')
  mkdirSync(folder)
  t.after(() => endProcessesOf(folder))

  const first = await startUp(t, muster, folder)
  assert.match(first.output(), /^Writing .*\nNo platform runs: starting one/)
  assert.ok(existsSync(join(folder, 'muster.yaml')))
  const page = await pageOf(first.url)
  const { code, stdout, stderr } = await muster.run(['versions', '--context', 'up', '--json'], { cwd: folder })
  assert.equal(code, 0, stderr)
  assert.match(stdout, /"display_name": ?"v1"/)
  await first.end()
  assert.deepEqual(processesOf(folder), [])

  const second = await startUp(t, muster, folder)
  assert.doesNotMatch(second.output(), /^Writing/m)
  assert.match(second.output(), /^prod runs this already/m)
  assert.equal(await pageOf(second.url), page)
  await second.end()
  assert.deepEqual(processesOf(folder), [])
})

/** Names below localhost are known to browsers, and not to every resolver. */
async function pageOf(url: string): Promise<string> {
  const { host, port, pathname } = new URL(url)
  const asked = request({ host: '127.0.0.1', port, path: pathname, headers: { host } }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  assert.equal(answer.statusCode, 200)
  return text(answer)
}

async function startUp(t: TestContext, muster: Muster, cwd: string) {
  const child = muster.start(ARGS, { cwd })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  }
  const closed = once(child, 'close')
  const [, url] = await until('muster up prints the address', () => {
    if (child.exitCode !== null) throw new Error(`muster up ended: ${output}`)
    return /^Play: (http:\S+)$/m.exec(output)
  })
  return {
    url: url!,
    output: () => output,
    async end() {
      child.kill('SIGINT')
      assert.deepEqual(await closed, [0, null], output)
    },
  }
}
