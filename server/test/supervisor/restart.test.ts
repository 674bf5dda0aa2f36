// `muster restart`, as an operator runs it after an upgrade: every role gets a new process, and nobody notices.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { MUSTER } from '../run/built-programs.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { until } from '../support/until.ts'
import { freeSettings, startMuster, temporaryFolder } from './started.ts'

const ROLE_COUNT = 4

async function restart(settings: Record<string, string>): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [MUSTER, 'restart'], { env: { PATH: process.env.PATH, ...settings } })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output: (await output).join('') }
}

test('muster restart replaces every role and keeps a connection that waits for its next request', async (t) => {
  const folder = temporaryFolder(t)
  await placeCluster(folder)
  const settings = { ...(await freeSettings(folder)) }
  const muster = startMuster(settings)
  await muster.ready
  const pidsOf = (which: 'roles' | 'retiring' = 'roles'): number[] => {
    const holder = readFileSync(join(settings.MUSTER_DATA, 'lock-holder.json'), 'utf8')
    return (JSON.parse(holder) as Record<typeof which, { pid: number }[]>)[which].map(({ pid }) => pid)
  }
  const before = pidsOf()
  assert.equal(before.length, ROLE_COUNT)
  const client = connect(Number(settings.MUSTER_EDGE_HTTP_PORT), '127.0.0.1')
  t.after(() => void client.destroy())
  const ask = async (): Promise<string> => {
    client.write('GET /cloud/bootstrap HTTP/1.1\r\nHost: localhost\r\n\r\n')
    return String((await once(client, 'data'))[0])
  }
  assert.match(await ask(), /^HTTP\/1\.1 /)

  const { code, output } = await restart(settings)
  assert.equal(code, 0, output)
  assert.match(
    output,
    /^(?:[1-4] of 4: (?:runner|edge|api|matchmaker) runs in a new process\.\n){4}All roles run in new processes\.\n$/,
  )
  await until('the former edge has ended', () => pidsOf('retiring').length === 0)
  assert.equal(pidsOf().length, ROLE_COUNT)
  assert.deepEqual(
    pidsOf().filter((pid) => before.includes(pid)),
    [],
  )
  assert.match(await ask(), /^HTTP\/1\.1 /)
  assert.equal(client.destroyed, false)
  assert.ok(!muster.output().includes('starting it again'), muster.output())
})

test('without a platform muster restart says how to name one', async (t) => {
  const folder = temporaryFolder(t)
  const { code, output } = await restart({ MUSTER_DATA: join(folder, 'nothing') })
  assert.equal(code, 1)
  assert.match(output, /No platform runs on .*nothing: set MUSTER_DATA/)
})
