// muster.yaml: the mistakes that are reported without a platform, and where.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { checkProjectText, type ProjectFault } from '../src/project/check.ts'
import { completeVersion } from '../src/project/complete.ts'

function projectFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-project-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['server', 'site']) mkdirSync(join(folder, name))
  return folder
}

const shown = ({ line, column, path, reason }: ProjectFault): string => `${line}:${column} ${path.join('.')} ${reason}`

test('every mistake of a file is reported at once, with its line, its column and a remedy', (t) => {
  const text = `game: Dots
server: { folder: ../elsewhere }
matchmaker:
  game_modes:
    default:
      max_playerz: 4
      idle_grace_ms: soon
  ready_deadline_ms: 60000
  docker:
    args: [node, main.js]
    env:
      LEVEL: 3
    ports:
      game: { protocol: htp }
      chat:
    image_id: 0190163d-8694-739b-aea5-966c26f8ad91
ignore: [x]
`
  const { faults } = checkProjectText(text, projectFolder(t))
  assert.deepEqual(faults.map(shown), [
    '1:7 game invalid',
    '6:7 matchmaker.game_modes.default.max_playerz unknown',
    '7:22 matchmaker.game_modes.default.idle_grace_ms wrong_type',
    '8:3 matchmaker.ready_deadline_ms unknown',
    '12:14 matchmaker.docker.env.LEVEL wrong_type',
    '14:25 matchmaker.docker.ports.game.protocol not_allowed',
    '15:7 matchmaker.docker.ports.chat empty',
    '16:5 matchmaker.docker.image_id unknown',
    '17:1 ignore unknown',
  ])
  for (const { message, remedy } of faults) {
    assert.match(message, /^\S.*[.?]$/)
    assert.match(remedy, /^\S.*\.$/, message)
  }
  const [name, unknown, , misplaced, quoted, protocol, empty, id, ignore] = faults
  assert.match(name!.remedy, /name_id/)
  assert.equal(unknown!.suggestion, 'max_players')
  assert.match(unknown!.message, /Did you mean max_players\?/)
  assert.equal(misplaced!.remedy, 'It belongs at another place: matchmaker.game_modes.NAME.ready_deadline_ms.')
  assert.equal(ignore!.remedy, 'It belongs at another place: server.ignore or site.ignore.')
  assert.match(quoted!.remedy, /quotes/)
  assert.match(protocol!.message, /Did you mean http\?/)
  assert.match(empty!.remedy, /chat: \{\}/)
  assert.match(id!.remedy, /muster deploy fills it in/)
})

test('parts that do not fit together are reported without a platform', (t) => {
  const folder = projectFolder(t)
  const check = (text: string): string[] => checkProjectText(text, folder).faults.map(shown)
  const modes = 'matchmaker:\n  game_modes: { a: {} }\n'
  assert.deepEqual(check(`${modes}  docker: { args: [x] }\n`), ['1:1 matchmaker needs_server'])
  assert.deepEqual(check(`server: {}\n${modes}`), ['2:1 matchmaker.docker.args too_few'])
  assert.deepEqual(check('server: {}\n'), ['1:1 server needs_matchmaker'])
  assert.deepEqual(check('cdn: {}\n'), ['1:1 cdn needs_site'])
  assert.deepEqual(check('site: { folder: ../x }\n'), ['1:17 site.folder outside'])
  assert.deepEqual(check('site: { folder: x }\n'), ['1:17 site.folder not_found'])
  assert.deepEqual(check('site: { folder: x, build: make }\n'), [])
  const docker = '  docker:\n    args: [x]\n    ports:\n      game: {}\n    env: { PORT_A: "1" }\n'
  assert.deepEqual(check(`server: {}\n${modes}${docker}`), ['8:20 matchmaker.docker.env.PORT_A conflicts_with_default'])
  // Only a platform knows its regions, tiers and ports: what names them is not a mistake here.
  const platform = '  regions: { moon: { tier: big } }\n  docker: { args: [x], ports: { a: { protocol: tcp_tls } } }\n'
  assert.deepEqual(check(`server: {}\n${modes}${platform}`), [])
})

test('text that is not YAML is reported where it breaks', (t) => {
  const folder = projectFolder(t)
  const check = (text: string): string[] => checkProjectText(text, folder).faults.map(shown)
  assert.deepEqual(check('game: a\ngame: b\n'), ['2:1 game duplicate_key'])
  assert.deepEqual(check('site:\n\tfolder: x\n').slice(0, 1), ['2:1  tab_as_indent'])
  assert.deepEqual(check('site: [a\n').length, 1)
  assert.deepEqual(check(''), ['1:1  empty'])
  assert.deepEqual(check('- a\n'), ['1:1  wrong_type'])
  assert.deepEqual(check('game: !secret x\n'), ['1:7  tag_resolve_failed'])
  assert.deepEqual(check('game: {{name}}\n'), ['1:8  bad_name'])
  assert.deepEqual(check('game: *nowhere\n'), ['1:7  bad_alias'])
})

test('a file that grows when it is read is refused: aliases, depth', (t) => {
  const folder = projectFolder(t)
  const laughs = Array.from({ length: 9 }, (_, index) => {
    const item = index === 0 ? '"lol"' : `*a${index - 1}`
    return `a${index}: &a${index} [${Array(9).fill(item).join(', ')}]`
  })
  assert.deepEqual(checkProjectText(laughs.join('\n'), folder).faults.map(shown), ['1:1  too_many_aliases'])
  const deep = `game: ${'['.repeat(100_000)}`
  assert.equal(checkProjectText(deep, folder).faults[0]?.reason, 'resource_exhaustion')
  assert.equal(
    checkProjectText('site: &s { folder: site }\nserver: *s\n', folder).faults[0]?.reason,
    'needs_matchmaker',
  )
})

test('the sent config has the ids of what was uploaded, in every docker block', () => {
  const game_modes = { a: { docker: { args: ['a'] } }, b: {} }
  const sent = completeVersion({ matchmaker: { game_modes } }, { build_id: 'B', site_id: 'S' })
  assert.deepEqual(sent, {
    cdn: { site_id: 'S' },
    matchmaker: {
      docker: { image_id: 'B' },
      game_modes: { a: { docker: { args: ['a'], image_id: 'B' } }, b: {} },
    },
  })
  assert.deepEqual(game_modes, { a: { docker: { args: ['a'] } }, b: {} }, 'the config of the file is not changed')
})

test('the examples of docs/muster-yaml.md have no mistakes', (t) => {
  const page = readFileSync(new URL('../../docs/muster-yaml.md', import.meta.url), 'utf8')
  const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text ?? '')
  assert.equal(examples.length, 2)
  const folder = projectFolder(t)
  for (const text of examples) assert.deepEqual(checkProjectText(text, folder).faults, [], text)
})
