import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { until } from '../../../test/support/until.ts'
import { runHook } from './dns-hook.ts'

async function prepare(t: TestContext, script: string) {
  const folder = await mkdtemp(join(tmpdir(), 'muster-hook-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'hook')
  await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  return { folder, path, ctx: { log }, lines }
}

test('a hook gets its arguments as they are, and what it writes is in the log', async (t) => {
  const { ctx, path, lines } = await prepare(t, 'echo "$# [$2]"; echo warning >&2; pwd')
  await runHook(ctx, path, ['present', '_acme-challenge.a b', '$(touch /tmp/x); *'])
  const { output, code } = JSON.parse(lines[0]!) as { output: string; code: number }
  assert.equal(code, 0)
  assert.match(output, /^3 \[_acme-challenge\.a b\]$/m)
  assert.match(output, /^warning$/m)
  assert.match(output, /^\/$/m)
})

test('a hook that fails, hangs or is not there is a failure that says so', async (t) => {
  const { ctx, folder, path } = await prepare(t, 'echo "no such zone"; exit 7')
  await assert.rejects(runHook(ctx, path, ['present', 'n', 'v']), /hook present ended with exit code 7: no such zone/)
  await assert.rejects(runHook(ctx, join(folder, 'none'), ['present', 'n', 'v']), /none cannot be run \(ENOENT\)/)
})

test('a hook that hangs is ended with all that it has started', { timeout: 60_000 }, async (t) => {
  const { ctx, folder, path } = await prepare(t, 'sleep 600 & echo $! > "$(dirname "$0")/child"; wait')
  await assert.rejects(runHook(ctx, path, ['present', 'n', 'v'], { ms_max: 2_000 }), /did not end within 2 s/)
  const child = Number(await readFile(join(folder, 'child'), 'utf8'))
  // Ended, if not yet collected by the system's first process.
  const status = await readFile(`/proc/${child}/status`, 'utf8').catch(() => 'State:\tX')
  assert.match(status, /^State:\t[ZX]/m)
})

test('a hook ends when the process is to end', { timeout: 60_000 }, async (t) => {
  const { ctx, folder, path } = await prepare(t, 'touch "$(dirname "$0")/begun"; sleep 600')
  const ending = new AbortController()
  const running = runHook(ctx, path, ['present', 'n', 'v'], { signal: ending.signal })
  await until('its begin', () => existsSync(join(folder, 'begun')))
  ending.abort()
  await assert.rejects(running, /hook present ended with SIGKILL/)
})

test('what a hook leaves running ends with it', { timeout: 60_000 }, async (t) => {
  const { ctx, path } = await prepare(t, 'sleep 600 &')
  await runHook(ctx, path, ['cleanup', 'n', 'v'])
})
