// The service units of deploy/. systemd accepts every line of them, and stopping a service in any way ends no lobby.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { lacking } from '../run/optional-programs.ts'

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url))
const UNITS = join(CHECKOUT, 'deploy', 'systemd')

test('systemd accepts every line of the units, and the programs they start exist', async (t) => {
  const missing = lacking('systemd-analyze')
  if (missing !== null) return t.skip(missing)
  const folder = await mkdtemp(join(tmpdir(), 'muster-units-'))
  t.after(() => rm(folder, { recursive: true }))
  for (const name of await readdir(UNITS)) {
    const text = await readFile(join(UNITS, name), 'utf8')
    // The path of this checkout, and the Node that runs the test.
    const here = text
      .replaceAll('/opt/muster/node_modules/.bin/node', process.execPath)
      .replaceAll('/opt/muster', CHECKOUT)
    const unit = join(folder, name.replace('@.', '@api.'))
    await writeFile(unit, here)
    const { status, stderr, stdout } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
    assert.deepEqual([status, stderr, stdout], [0, '', ''], name)
  }
})

test('lobbies keep running, whatever ends a unit', async () => {
  const names = await readdir(UNITS)
  assert.ok(names.length > 0)
  for (const name of names) {
    const text = await readFile(join(UNITS, name), 'utf8')
    for (const line of ['KillMode=process', 'KillSignal=SIGTERM', 'Delegate=yes', 'OOMPolicy=continue'])
      assert.ok(text.split('\n').includes(line), `${name}: ${line}`)
    const program = /^ExecStart=\S+ (\S+)/m.exec(text)?.[1]
    assert.ok(program !== undefined && existsSync(join(CHECKOUT, program)), name)
  }
})
