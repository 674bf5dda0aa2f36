// The first start on a machine without bubblewrap.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { MUSTER } from '../run/built-programs.ts'
import { whyNotHidden, withoutPrograms } from '../run/hidden-programs.ts'
import { until } from '../support/until.ts'
import { freeSettings, temporaryFolder } from './started.ts'

test('a start without bubblewrap says in one line what follows and which command installs it', async (t) => {
  const missing = whyNotHidden(join(temporaryFolder(t), 'layers'))
  if (missing !== null) return t.skip(missing)
  const folder = temporaryFolder(t)
  const settings = { ...(await freeSettings(folder)), MUSTER_ROLES: 'runner' }
  const [program, ...args] = withoutPrograms(join(temporaryFolder(t), 'layers'), [process.execPath, MUSTER, 'start'])
  let output = ''
  const child = execFile(program, args, { env: { ...process.env, ...settings } })
  const closed = new Promise((resolve) => child.once('close', resolve))
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (text: string) => {
      output += text
    })
  }
  await until('the platform to be ready', () => /^ready in /m.test(output) || child.exitCode !== null)
  child.kill('SIGINT')
  await closed
  assert.deepEqual(
    output.split('\n').filter((line) => /bubblewrap|sandbox/.test(line)),
    [
      '  warning runner       lobbies run without a sandbox: run only trusted builds, or install one: sudo apt-get install bubblewrap',
    ],
    output,
  )
})
