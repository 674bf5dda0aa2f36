// Which test files are run once more without the optional programs.
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { programDependents } from './program-dependents.ts'

const ROOT = join(import.meta.dirname, '../../..')
const ALL = globSync('{contract,protocols,server,cli,scripts}/**/*.test.ts', {
  cwd: ROOT,
  exclude: (name) => name === 'node_modules',
}).map((file) => resolve(ROOT, file))
const found = new Set(programDependents(ALL).map((file) => nameOf(file)))

function nameOf(file: string): string {
  return relative(ROOT, file).replace('.long.test.ts', '.test.ts')
}

test('files that ask for a program, that start lobbies, and that start the whole platform depend on programs', () => {
  for (const file of [
    // Skipped in part.
    'server/test/end-to-end/browser.test.ts',
    'server/test/runner/driver.test.ts',
    'server/test/database/pgbouncer.test.ts',
    'cli/test/debian-servers.test.ts',
    // Red on a bare machine before.
    'cli/test/doctor.test.ts',
    'cli/test/screens-operate.test.ts',
    'server/test/doctor/doctor.test.ts',
    'server/test/edge/seats.test.ts',
    // Lobbies with nothing skipped.
    'server/test/runner/retention.test.ts',
    'server/test/supervisor/start.test.ts',
    'server/test/edge/proxy-socket.test.ts',
  ]) {
    assert.ok(found.has(file), file)
  }
})

test('files that run the same with and without programs are not repeated', () => {
  for (const file of [
    'server/test/matchmaker/join.test.ts',
    'contract/src/formats.test.ts',
    // Lobbies of the platform of the tests, without sandboxes.
    'cli/test/deploy.test.ts',
    'cli/test/commands.test.ts',
  ]) {
    assert.ok(ALL.some((path) => nameOf(path) === file) && !found.has(file), file)
  }
  assert.ok(found.size < ALL.length / 2, `${found.size} of ${ALL.length}`)
})
