// `muster doctor` as a person runs it: its text, its JSON and its exit code. What it finds is tested in server/test/doctor/.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MUSTER } from '../../server/test/run/built-programs.ts'
import { withoutPrograms } from '../../server/test/run/hidden-programs.ts'
import { lacking } from '../../server/test/run/optional-programs.ts'
import { freeSettings, temporaryFolder } from '../../server/test/supervisor/started.ts'
import { createMuster } from './program.ts'

type Finding = { check: string; status: string; remedy: string | null }

test('doctor exits with 0 where a platform can start, and with 1 and a remedy where it cannot', async (t) => {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o711)
  const settings = await freeSettings(folder)
  const muster = createMuster(t, settings)
  const sound = await muster.run(['doctor'])
  assert.equal(sound.code, 0, sound.stdout)
  assert.match(sound.stdout, /can start: muster start/)

  const wrong = await muster.run(['doctor'], { env: { MUSTER_API_PORT: settings.MUSTER_MATCHMAKER_PORT } })
  assert.equal(wrong.code, 1)
  assert.match(wrong.stdout, /^FAIL +ports .*\n +-> ss -ltnp/m)
})

test('doctor finds a sandbox that is required and missing', async (t) => {
  const settings = await freeSettings(temporaryFolder(t))
  const layers = join(temporaryFolder(t), 'layers')
  // On a machine without bubblewrap nothing has to be hidden, and this needs no namespace.
  const command = [process.execPath, MUSTER, 'doctor', '--json'] as const
  const [program, ...args] = lacking('bwrap') === null ? withoutPrograms(layers, command) : command
  const env = {
    ...settings,
    PATH: process.env.PATH,
    MUSTER_SANDBOX: 'required',
    MUSTER_DOMAIN_MAIN: 'main.test',
    MUSTER_DOMAIN_CDN: 'cdn.example',
    MUSTER_DOMAIN_JOB: 'job.invalid',
    MUSTER_CAPACITY_CORES: '1',
    // No name server is asked for names of a test.
    MUSTER_DNS_SERVERS: '127.0.0.1:9',
  }
  const { stdout, stderr, status } = spawnSync(program, args, { env, encoding: 'utf8' })
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  const sandbox = findings.find(({ check }) => check === 'sandbox')
  assert.equal(sandbox?.status, 'failed', stderr)
  assert.match(sandbox.remedy ?? '', /apt-get install bubblewrap/)
  assert.equal(status, 1)
})
