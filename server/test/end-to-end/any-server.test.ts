// docs/any-server.md as a stranger follows it: every command in one bash, from an empty folder, with the platform that
// `muster start` brings up.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MUSTER } from '../run/built-programs.ts'
import { lacking } from '../run/optional-programs.ts'
import { freeSettings, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { readPage, stepsOf } from './documentation/page.ts'
import { openShell } from './documentation/shell.ts'

const PAGE = 'docs/any-server.md'
const STEPS_MIN = 4

test('the session of docs/any-server.md works to its last line from an empty folder', async (t) => {
  const missing = lacking('curl', 'python3')
  if (missing !== null) return t.skip(missing)
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  await placeCluster(folder)
  await startMuster(settings).ready
  const home = temporaryFolder(t)
  mkdirSync(join(home, 'bin'))
  const program = join(home, 'bin/muster')
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${MUSTER}' "$@"\n`)
  chmodSync(program, 0o755)
  const shell = openShell(t, temporaryFolder(t), {
    HOME: home,
    MUSTER_URL: `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`,
    MUSTER_TOKEN: readFileSync(join(folder, 'admin-token'), 'utf8').trim(),
  })
  await shell.run('the program', `PATH="${join(home, 'bin')}:$PATH"`)
  const blocks = stepsOf(readPage(PAGE)).filter((step) => step.kind === 'block')
  const commands = blocks.filter(({ language }) => language === 'sh')
  assert.ok(commands.length >= STEPS_MIN, `${PAGE} has ${commands.length} blocks of commands`)
  const printed: string[] = []
  for (const { line, text } of commands) printed.push(await shell.run(`${PAGE}:${line}`, text))
  const [refused = '', log = ''] = printed.slice(-2)
  assert.match(refused, /"code":"PLAYER_TOKEN_INVALID"/)
  assert.match(refused, /^hello, [0-9a-f-]{36}$/m)
  assert.match(log, /"GET \/ HTTP\/1\.1" 200/)
  assert.doesNotMatch(log, /player_token/)
})
