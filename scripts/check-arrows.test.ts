// Runs the check on a copy of this repository in which every rule is broken once.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { faultsInside } from './arrows/boxes.ts'

const ROOT = dirname(import.meta.dirname)
const CHECK = join(import.meta.dirname, 'check-arrows.ts')
const COPIED = ['contract', 'protocols', 'server', 'sdk', 'cli', 'hub', 'examples', 'bench', 'scripts']

/** A file with its text, and the fault that the check must print. */
type Planted = { path: string; text: string; fault: RegExp }

const PLANTED: Planted[] = [
  {
    path: 'server/src/edge/planted-runner.ts',
    text: "import { createPorts } from '../runner/ports.ts'\nexport const ports = createPorts\n",
    fault: /:1 edge may not import runner /,
  },
  {
    path: 'server/src/edge/planted-many-lines.ts',
    text: "// A remark.\nimport {\n  createPorts,\n} from '../runner/ports.ts'\nexport const ports = createPorts\n",
    fault: /:2 edge may not import runner /,
  },
  {
    path: 'server/src/runner/planted-http.ts',
    text: "export * from '../http/auth.ts'\n",
    fault: /:1 runner may not import http /,
  },
  {
    path: 'server/src/runner/planted-matchmaker.ts',
    text: "export type { Lobby } from '../matchmaker/book/lobby.ts'\n",
    fault: /:1 runner may not import matchmaker /,
  },
  {
    path: 'server/src/http/planted-edge.ts',
    text: "export const edge = () => import('../edge/start.ts')\n",
    fault: /:1 http may not import edge /,
  },
  {
    path: 'server/src/cloud/planted-side-effect.ts',
    text: "import '../http/server.ts'\n",
    fault: /:1 cloud may not import http /,
  },
  {
    path: 'server/src/matchmaker/planted-main.ts',
    text: 'import { startRoles } from "../main.ts"\nexport const start = startRoles\n',
    fault: /:1 matchmaker may not import main /,
  },
  {
    path: 'server/src/newroom/planted.ts',
    text: "import type { Config } from '../config/config.ts'\nexport type Same = Config\n",
    fault: /:1 "newroom" has no line in ARROWS/,
  },
  {
    path: 'server/src/edge/planted-test.ts',
    text: "import { openFixture } from '../../test/support/platform.ts'\nexport const fixture = openFixture\n",
    fault: /:1 \S+ is a test, or there for tests only/,
  },
  {
    path: 'sdk/src/planted-support.ts',
    text: "export * from './test-platform.ts'\n",
    fault: /:1 \S+ is a test, or there for tests only/,
  },
  {
    path: 'server/src/edge/planted-nowhere.ts',
    text: "import { nothing } from './not-there.ts'\nexport const nought = nothing\n",
    fault: /:1 \.\/not-there\.ts leads nowhere/,
  },
  {
    path: 'server/src/edge/planted-worked-out.ts',
    text: 'const name = String()\nexport const any = () => import(name)\n',
    fault: /:2 import\(\) leads nowhere that can be read/,
  },
  {
    path: 'server/src/edge/planted-unreadable.ts',
    text: "import {\n  createPorts, // it's the runner's\n} from '../runner/ports.ts'\nexport const ports = createPorts\n",
    fault: /:1 import\(\) leads nowhere that can be read/,
  },
  {
    path: 'contract/src/planted-server.ts',
    text: "export { readConfig } from '@musterhost/server/config/read-config'\n",
    fault: /:1 contract may not import config /,
  },
  {
    path: 'contract/src/planted-past-exports.ts',
    text: "export { readConfig } from '../../server/src/config/read-config.ts'\n",
    fault: /:1 contract may not import config /,
  },
  {
    path: 'cli/src/planted-past-exports.ts',
    text: "export { supervise } from '../../server/src/supervisor/start.ts'\n",
    fault: /:1 \S+ leads into another workspace past its exports/,
  },
  {
    path: 'sdk/src/planted-contract.ts',
    text: "export { ERRORS } from '@musterhost/contract'\n",
    fault: /:1 sdk may not import contract /,
  },
  {
    path: 'sdk/src/planted-package.ts',
    text: "export { WebSocket } from 'ws'\n",
    fault: /:1 sdk may import nothing but itself and Node/,
  },
  {
    path: 'examples/arena/server/planted-contract.ts',
    text: "export { ERRORS } from '@musterhost/contract'\n",
    fault: /:1 examples\/arena may not import contract /,
  },
  {
    path: 'examples/arena/server/planted-package.ts',
    text: "export { Kysely } from 'kysely'\n",
    fault: /:1 kysely is not among the dependencies of @musterhost\/arena/,
  },
  {
    path: 'server/src/edge/planted-environment.ts',
    text: 'export const home = process.env.HOME\n',
    fault: /:1 environment is not read here/,
  },
  {
    path: 'server/src/edge/planted-environment-by-name.ts',
    text: "import { env } from 'node:process'\nexport const home = env.HOME\n",
    fault: /:1 environment is not read here/,
  },
  {
    path: 'server/src/edge/planted-clock.ts',
    text: '// Date.now() in a comment is none.\nexport const now = () => Date.now()\n',
    fault: /:2 clock is not read here/,
  },
  {
    path: 'server/src/edge/planted-new-date.ts',
    text: 'export const now = () => new Date()\nexport const then = () => new Date(0)\n',
    fault: /:1 clock is not read here/,
  },
  {
    path: 'server/src/edge/planted-random.ts',
    text: 'export const dice = () => Math.random()\n',
    fault: /:1 randomness is not read here/,
  },
  {
    path: 'server/src/edge/planted-require.ts',
    text: "export const fs = process.getBuiltinModule('node:fs')\n",
    fault: /:1 loading is not read here/,
  },
  {
    path: 'server/src/edge/tls/planted-streams.ts',
    text: "export type { Streams } from '../streams/tcp.ts'\n",
    fault: /:1 tls -> streams is no arrow of server\/src\/edge\./,
  },
  {
    path: 'server/src/matchmaker/book/planted-shards.ts',
    text: "export type { Shard } from '../shards/shard.ts'\n",
    fault: /:1 book -> shards is no arrow of server\/src\/matchmaker\./,
  },
  {
    path: 'server/src/outbound/planted-trust.ts',
    text: 'export const options = { rejectUnauthorized: false }\n',
    fault: /:1 trust is not read here/,
  },
  {
    path: 'server/src/runner/planted-type.ts',
    text: "export type { Driver } from './drivers/driver.ts'\nexport type Lobby = { pid: number }\n",
    fault: /:2 server\/src\/matchmaker\/book\/lobby\.ts exports a type Lobby too/,
  },
  {
    path: 'hub/src/parts/planted-class.ts',
    text: 'export class ApiError extends Error {}\n',
    fault: /:1 contract\/src\/\S+ exports a type ApiError too/,
  },
]

test('the arrows of this repository point where they should', () => {
  const { status, stdout, stderr } = check(ROOT)
  assert.equal(stderr, '')
  assert.equal(status, 0)
  assert.match(stdout, /^Arrows: \d{4,} imports of \d{3,} files read\.$/m)
})

test('every kind of wrong arrow and every forbidden word is found, with its file and line', (t) => {
  const copy = copyOfRepository(t)
  for (const { path, text } of PLANTED) {
    mkdirSync(dirname(join(copy, path)), { recursive: true })
    writeFileSync(join(copy, path), text)
  }
  const { status, stderr } = check(copy)
  assert.equal(status, 1)
  // An arrow inside a room that points back also closes a circle.
  const faults = stderr
    .trim()
    .split('\n')
    .slice(0, -1)
    .filter((line) => !line.endsWith(' are a circle.'))
  for (const { path, fault } of PLANTED) {
    const found = faults.filter((line) => line.startsWith(`${path}:`))
    assert.equal(found.length, 1, `${path}: ${found.join(' | ') || 'nothing was found'}`)
    assert.match(found[0]!, fault)
  }
  assert.equal(faults.length, PLANTED.length, stderr)
})

test('the book may not use clocks, randomness, promises or other rooms', (t) => {
  const copy = copyOfRepository(t)
  const book = 'server/src/matchmaker/book/state.ts'
  const words = ['performance.now()', 'Promise.resolve(setTimeout)', 'process.pid', 'async () => {}']
  appendFileSync(
    join(copy, book),
    `\n${words.map((word, index) => `export const planted${index} = ${word}`).join('\n')}`,
  )
  appendFileSync(join(copy, book), "\nimport { newId } from '../ids.ts'\nexport const id = newId\n")
  const { stderr } = check(copy)
  assert.equal(stderr.match(/state\.ts:\d+ a pure file has no such word/g)?.length, words.length)
  assert.equal(stderr.match(/state\.ts:\d+ a pure file imports only types and pure files/g)?.length, 1)
})

test('an exception that no file needs is a fault', (t) => {
  const copy = copyOfRepository(t)
  writeFileSync(join(copy, 'server/src/context.ts'), "export type { Config } from './config/config.ts'\n")
  const { status, stderr } = check(copy)
  assert.equal(status, 1)
  assert.match(stderr, /the exception for server\/src\/context\.ts is not needed/)
})

test('two files that import only types of each other are a circle', (t) => {
  const copy = copyOfRepository(t)
  const folder = join(copy, 'server/src/edge/cdn')
  writeFileSync(join(folder, 'planted-a.ts'), "import type { B } from './planted-b.ts'\nexport type A = B\n")
  writeFileSync(join(folder, 'planted-b.ts'), "import type { A } from './planted-a.ts'\nexport type B = A[]\n")
  const { status, stderr } = check(copy)
  assert.equal(status, 1)
  assert.match(stderr, /cdn\/planted-a\.ts, \S+planted-b\.ts are a circle/)
})

test('an arrow inside a room that no import needs is a fault, and so is a circle', () => {
  const source = (path: string, file: string) => ({
    path,
    lines: [],
    imports: [{ specifier: file, line: 1, is_type: false, file }],
  })
  const sources = [source('room/a.ts', 'room/b.ts'), source('room/b.ts', 'room/a.ts')]
  assert.deepEqual(faultsInside('room', { a: ['b'], b: [] }, sources), ['room/b.ts:1 b -> a is no arrow of room.'])
  assert.deepEqual(faultsInside('room', { a: ['b', 'c'], b: ['a'] }, sources), [
    'rules.ts: no import of room needs a -> c.',
    'rules.ts: a, b of room are a circle.',
  ])
})

test('a check that reads hardly any files fails', (t) => {
  const { status, stdout, stderr } = check(temporaryFolder(t))
  assert.equal(status, 1)
  assert.match(stdout, /0 imports of 0 files/)
  assert.match(stderr, /the reading is at fault/)
})

function check(root: string): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [CHECK, root], { encoding: 'utf8' })
}

function copyOfRepository(t: TestContext): string {
  const folder = temporaryFolder(t)
  const filter = (path: string) => !['node_modules', '.muster', 'dist'].includes(basename(path))
  for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter })
  return folder
}

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-arrows-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}
