// A project folder as the commands read it: muster.yaml with its folders, and the lines of its members.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { checkProject, locateErrors, readProject } from '../src/project/project.ts'
import { createMuster } from './program.ts'

const GOOD = `# A game.
game: dots
server:
  folder: server
  ignore: ['*.log']
site: { folder: site }
matchmaker:
  game_modes:
    default: { max_players: 4 }
    duel:
      max_players: 2
  docker:
    args: [node, main.js]
    ports:
      game: { protocol: http }
`

function projectFolder(t: TestContext, files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-project-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['server', 'site']) mkdirSync(join(folder, name))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

test('a good file is read with its folders, and its version has no ids', (t) => {
  const folder = projectFolder(t, { 'muster.yaml': GOOD })
  const project = readProject(join(folder, 'server'))
  assert.equal(project.file, join(folder, 'muster.yaml'))
  assert.deepEqual([project.game, project.namespace, project.url], ['dots', null, null])
  assert.deepEqual(project.server, { folder: join(folder, 'server'), build: null, ignore: ['*.log'] })
  assert.deepEqual(project.site, { folder: join(folder, 'site'), build: null, ignore: [] })
  assert.deepEqual(Object.keys(project.version), ['matchmaker'])
  assert.deepEqual(project.locate(['matchmaker', 'game_modes', 'duel', 'max_players']), { line: 11, column: 7 })
})

test('the same file as JSON is read the same', (t) => {
  const { version } = readProject(projectFolder(t, { 'muster.yaml': GOOD }))
  const folder = projectFolder(t, {
    'muster.json': JSON.stringify({ $schema: './x.json', server: {}, ...version }, null, '\t'),
  })
  assert.deepEqual(readProject(folder).version, version)
})

test('an error of the platform is shown at its line in the file', (t) => {
  const project = readProject(projectFolder(t, { 'muster.yaml': GOOD }))
  const path = ['config', 'matchmaker', 'game_modes', 'duel', 'tier']
  assert.deepEqual(locateErrors(project, [{ path, reason: 'not_found', message: 'There is no tier.' }]), [
    { path: 'matchmaker.game_modes.duel.tier', line: 10, column: 5, message: 'There is no tier.' },
  ])
})

test('a file that is too large, or no text, is refused', (t) => {
  const folder = projectFolder(t)
  writeFileSync(join(folder, 'muster.yaml'), `game: dots # ${'x'.repeat(256 * 1024)}`)
  assert.throws(() => checkProject(folder), /has at most 262144/)
  writeFileSync(join(folder, 'muster.yaml'), Buffer.from([0x67, 0xff, 0xfe]))
  assert.throws(() => checkProject(folder), /is not UTF-8 text/)
  assert.throws(() => readProject(join(folder, 'server'), 'missing.yaml'), /does not exist/)
})

test('muster config check and muster config schema work without a platform', async (t) => {
  const muster = createMuster(t)
  const good = projectFolder(t, { 'muster.yaml': GOOD })
  const checked = await muster.run(['config', 'check'], { cwd: join(good, 'server') })
  assert.deepEqual([checked.code, checked.stdout], [0, `${join(good, 'muster.yaml')} has no mistakes.\n`])

  // What a game mode replaces of matchmaker.docker is named, and is no mistake.
  const sprint = '    sprint: { docker: { args: [node, main.js, sprint] } }\n'
  const two = projectFolder(t, { 'muster.yaml': GOOD.replace('  game_modes:\n', (line) => `${line}${sprint}`) })
  const named = await muster.run(['config', 'check'], { cwd: two })
  assert.equal(named.code, 0, named.stderr)
  assert.match(named.stdout, /\n {2}9:25 {2}The game mode sprint replaces args of matchmaker\.docker\.\n$/)

  const of_shell = projectFolder(t, { 'muster.yaml': GOOD.replace('[node, main.js]', '[node, main.js, $PORT]') })
  const shown = await muster.run(['config', 'check'], { cwd: of_shell })
  assert.match(shown.stdout, /\n {2}\d+:\d+ {2}No shell reads args, so \$PORT stays as it is\. Write \$\{PORT\}\.\n$/)

  const bad = projectFolder(t, { 'muster.yaml': GOOD.replace('max_players', 'max_playrs').replace('http', 'htp') })
  const refused = await muster.run(['config', 'check'], { cwd: bad })
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /muster\.yaml has 2 mistakes:\n {2}9:16 .* Did you mean max_players\?.*\n {2}15:25 /)
  const json = await muster.run(['config', 'check', '--json'], { cwd: bad })
  const { errors } = JSON.parse(json.stdout) as { errors: { suggestion?: string; line: number }[] }
  assert.deepEqual(
    errors.map(({ line, suggestion }) => [line, suggestion]),
    [
      [9, 'max_players'],
      [15, undefined],
    ],
  )
  const none = await muster.run(['config', 'check'])
  assert.equal(none.code, 2)
  assert.match(none.stderr, /muster init/)

  const { stdout } = await muster.run(['config', 'schema'])
  const shipped = readFileSync(new URL('../../contract/muster.schema.json', import.meta.url), 'utf8')
  assert.equal(stdout, shipped, 'npm run generate writes the same')
})

test('npm run muster works in the folder where the person typed it, as npm names it', async (t) => {
  const muster = createMuster(t)
  const good = projectFolder(t, { 'muster.yaml': GOOD })
  const env = { npm_lifecycle_event: 'muster', INIT_CWD: join(good, 'server') }
  const checked = await muster.run(['config', 'check'], { env })
  assert.deepEqual([checked.code, checked.stdout], [0, `${join(good, 'muster.yaml')} has no mistakes.\n`])
  // A script of the person's own, which npm runs in the folder of its package.json.
  const other = await muster.run(['config', 'check'], { env: { ...env, npm_lifecycle_event: 'deploy' } })
  assert.match(other.stderr, /There is no muster\.yaml/)
})
