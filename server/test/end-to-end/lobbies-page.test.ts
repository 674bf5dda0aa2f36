// docs/lobbies.md against the code and against a real lobby: its numbers are the constants that the comments beside them
// name, its lists are complete, and what it says of the sandbox is what a server finds there.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findLobby, getRegionTiers } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { lacking } from '../run/optional-programs.ts'
import { startPlatform, type TestGame } from '../support/platform.ts'
import { stepsOf } from './documentation/page.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PAGE = readFileSync(join(ROOT, 'docs/lobbies.md'), 'utf8')
const NUMBERS_MIN = 25
const DEFAULT_TIER = 'basic-1d1'
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  days: 86_400_000,
  KiB: 1_024,
  MiB: 1_024 ** 2,
}
/** A number of the page, and the file and the text before the number there. */
const NUMBER = /([\d,]+)(?: (s|min|h|days|KiB|MiB))? <!-- (\S+\.ts) (.+?) -->|<!-- (\S+\.ts) (.+?) -->([\d,]+) (\w+)/g

/** What a lobby finds, asked by the lobby itself. */
const REPORTER = `
const { createServer } = process.getBuiltinModule('node:http')
import { mkdirSync, readdirSync, readFileSync, rmdirSync, statfsSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
const isWritable = (folder) => {
  try { mkdirSync(folder + '/mine'); rmdirSync(folder + '/mine'); return true } catch { return false }
}
const root = readdirSync('/').map((name) => '/' + name)
const { username, uid, homedir } = userInfo()
const report = () => ({
  root, writable: [...root, '/dev/shm'].filter(isWritable), etc: readdirSync('/etc'), dev: readdirSync('/dev'), sys: readdirSync('/sys'),
  sizes: ['/scratch', '/tmp', '/dev/shm'].map((folder) => { const { blocks, bsize } = statfsSync(folder); return blocks * bsize }),
  username, uid, homedir, hostname: hostname(), cwd: process.cwd(), node: process.execPath, env: process.env,
  status: readFileSync('/proc/self/status', 'utf8'), processes: readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).length,
})
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
createServer((_, response) => response.end(JSON.stringify(report()))).listen(PORT_GAME, '127.0.0.1', () =>
  fetch(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers: { authorization: 'Bearer ' + PLATFORM_TOKEN } }))
`
type Report = {
  root: string[]
  writable: string[]
  etc: string[]
  dev: string[]
  sys: string[]
  sizes: number[]
  username: string
  uid: number
  homedir: string
  hostname: string
  cwd: string
  node: string
  env: Record<string, string>
  status: string
  processes: number
}

test('every number of docs/lobbies.md is the one of the code', () => {
  let count = 0
  for (const [, digits, unit, file, text, file_2, text_2, digits_2, unit_2] of PAGE.matchAll(NUMBER)) {
    const [place, shown] = [`${file ?? file_2} ${text ?? text_2}`, digits ?? digits_2]
    const number = Number(shown!.replaceAll(',', '')) * UNITS[unit ?? unit_2 ?? '']!
    assert.equal(number, numberAfter(file ?? file_2!, text ?? text_2!), place)
    count += 1
  }
  assert.ok(count >= NUMBERS_MIN, `${count} numbers`)
  for (const { header, rows } of tablesOf(PAGE)) {
    const column = header.indexOf('number')
    if (column !== -1) for (const row of rows) assert.match(row[column]!, /<!-- \S+\.ts .+ -->/, row.join(' | '))
  }
})

test('docs/lobbies.md lists every reason of an end, and every operation that a lobby token may call', () => {
  const { StopReason, RemoveReason } = unionsOf('server/src/journal/changes.ts')
  const { ExitReason } = unionsOf('server/src/runner/drivers/driver.ts')
  assert.deepEqual(namesIn('stopped because'), StopReason!.sort())
  assert.deepEqual(namesIn('ended because'), RemoveReason!.sort())
  assert.deepEqual(namesIn('exit reason'), ExitReason!.sort())
  const of_lobbies = OPERATIONS.filter(({ auth, path }) => auth.includes('lobby') && !path.startsWith('/kv/'))
  assert.deepEqual(
    namesIn('operation').filter((name) => !name.startsWith('/kv') && name.includes(' ')),
    of_lobbies.map(({ method, path }) => `${method} ${path}`).sort(),
  )
})

test('a real lobby finds the sandbox and the variables of docs/lobbies.md, and its server in Python plays', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })

  await t.test('folders, user, limits and variables', async (sub_test) => {
    const missing = lacking('bwrap')
    if (missing !== null) return sub_test.skip(missing)
    const game = await platform.game({
      files: { 'server.mjs': REPORTER },
      docker: {
        args: ['node', 'server.mjs'],
        ports: { game: { protocol: 'http' } },
        env: { PATH: '/mine', LEVEL: '7' },
      },
    })
    const { lobby_id, url } = await seatOf(game)
    const { tiers } = await platform.client.call(getRegionTiers, {})
    const { disk } = tiers.find(({ tier_name_id }) => tier_name_id === DEFAULT_TIER)!
    requireSandbox(JSON.parse(await (await fetch(url)).text()) as Report, { lobby_id, disk_bytes: disk * 1_024 ** 2 })
  })

  await t.test('the example in Python lets in who has a player token, once', async (sub_test) => {
    const missing = lacking('python3')
    if (missing !== null) return sub_test.skip(missing)
    const example = stepsOf(PAGE).find((step) => step.kind === 'block' && step.language === 'python')
    assert.ok(example?.kind === 'block')
    const docker = { args: ['python3', 'server.py'], ports: { game: { protocol: 'http' as const } } }
    const game = await platform.game({ files: { 'server.py': example.text }, docker })
    const { url, token } = await seatOf(game)
    const statuses = []
    for (const used of ['forged', token, token]) statuses.push((await fetch(`${url}/?token=${used}`)).status)
    assert.deepEqual(statuses, [403, 200, 403])
  })
})

function requireSandbox(seen: Report, { lobby_id, disk_bytes }: { lobby_id: string; disk_bytes: number }): void {
  const { rows } = tableOf('folder')
  const named = rows.map(([folder = '', access]) => ({ folder: namesOf(folder)[0]!, access }))
  // The page names these in the row of /usr.
  const with_usr = seen.root.filter((folder) => /^\/(s?bin|lib\w*)$/.test(folder))
  assert.deepEqual(
    named
      // The page names one folder of /sys.
      .map(({ folder }) => folder.match(/^\/[^/]+/)![0])
      .concat(with_usr)
      .sort(),
    seen.root.sort(),
  )
  const writable = named.filter(({ access }) => access === 'writable').map(({ folder }) => folder)
  assert.deepEqual(seen.writable.sort(), ['/dev/shm', ...writable].sort())
  const [scratch_bytes, ...in_memory] = seen.sizes
  assert.deepEqual(new Set(in_memory), new Set([numberAfter('server/src/runner/launch.ts', 'TMP_BYTES')]))
  // The tables of the file system take a part.
  const share = scratch_bytes! / disk_bytes
  assert.ok(share > 0.97 && share < 1, `${scratch_bytes} of ${disk_bytes} bytes`)
  const devices = namesOf(rows.find(([folder]) => folder === '`/dev`')![2]!).filter((name) => !name.startsWith('/'))
  for (const device of devices) assert.ok(seen.dev.includes(device), device)
  assert.ok(!seen.etc.includes('shadow') && seen.etc.includes('passwd'), seen.etc.join())
  assert.deepEqual(seen.sys, ['fs'])
  assert.deepEqual([seen.username, seen.uid, seen.homedir], ['lobby', 1000, '/scratch'])
  assert.deepEqual([seen.hostname, seen.cwd, seen.node], [lobby_id, '/build', '/platform/bin/node'])
  assert.match(seen.status, /^CapEff:\t0+$/m)
  assert.equal(seen.processes, 2, 'its own first process, and the server')
  requireVariables(seen.env)
}

function requireVariables(env: Report['env']): void {
  assert.deepEqual([env.HOME, env.TMPDIR, env.LEVEL], ['/scratch', '/tmp', '7'])
  assert.equal(env.PATH, '/platform/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games')
  assert.ok(Number(env.PORT_GAME) >= 20_000 && Number(env.PORT_GAME) <= 25_999, `${env.PORT_GAME}`)
  const only_if_asked = ['PLATFORM_LOBBY_CONFIG', 'PLATFORM_LOBBY_TAGS']
  const named = namesIn('variable').filter((name) => !name.includes('<') && !only_if_asked.includes(name))
  const of_port = ['PORT_GAME', 'PUBLIC_HOST_GAME', 'PUBLIC_PORT_GAME', 'PUBLIC_URL_GAME']
  for (const name of of_port) assert.ok(env[name], name)
  assert.equal(env.PORT, env.PORT_GAME)
  const set = Object.keys(env).filter((name) => ![...of_port, 'LEVEL', 'PWD'].includes(name))
  assert.deepEqual(set.sort(), named)
}

async function seatOf(game: TestGame): Promise<{ lobby_id: string; url: string; token: string }> {
  const { lobby, ports, player } = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  return { lobby_id: lobby.lobby_id, url: ports.game!.url, token: player.token }
}

/** The number that follows the text in a file, the only one. A product of numbers and powers is multiplied. */
function numberAfter(file: string, text: string): number {
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const found = [...readFileSync(join(ROOT, file), 'utf8').matchAll(new RegExp(`${escaped}(?: =|:) ([\\d_* ]+)`, 'g'))]
  assert.equal(found.length, 1, `${file} has ${text} ${found.length} times`)
  return found[0]![1]!.split(/(?<!\*)\*(?!\*)/).reduce((product, factor) => {
    const [base, power] = factor.replaceAll('_', '').split('**').map(Number)
    return product * base! ** (power ?? 1)
  }, 1)
}

/** The members of each `export type NAME = 'a' | 'b'`. */
function unionsOf(file: string): Record<string, string[]> {
  const text = readFileSync(join(ROOT, file), 'utf8')
  const unions = [...text.matchAll(/^export type (\w+) =\n((?: {2}.*\n)+)/gm)]
  return Object.fromEntries(
    unions.map(([, name, members]) => [name, [...members!.matchAll(/^ {2}\| '(\w+)'/gm)].map(([, member]) => member!)]),
  )
}

type Table = { header: string[]; rows: string[][] }

function tablesOf(markdown: string): Table[] {
  const cells = (line: string) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
  return [...markdown.matchAll(/(?:^\|.*\|\n)+/gm)].map(([text]) => {
    const [header = '', , ...rows] = text.trim().split('\n')
    return { header: cells(header), rows: rows.map(cells) }
  })
}

function tableOf(first_header: string): Table {
  const table = tablesOf(PAGE).find(({ header }) => header[0] === first_header)
  assert.ok(table, `There is no table of ${first_header}.`)
  return table
}

/** What stands in backticks in the first column. */
function namesIn(first_header: string): string[] {
  return tableOf(first_header)
    .rows.flatMap(([first = '']) => namesOf(first))
    .sort()
}

function namesOf(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)
}
