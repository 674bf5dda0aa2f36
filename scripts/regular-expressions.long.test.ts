// Runs every regular expression of the platform, in its sources and in the schemas of the contract, against long texts that
// are made for it. Its time may only grow with the length of the text, so that no text of a client can block a process.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { OPERATIONS } from '../contract/src/operations.ts'
import { findSlow } from './regular-expressions/attack.ts'
import { literalsOf } from './regular-expressions/read.ts'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = '{contract,protocols,server,sdk,cli}/src/**/*.ts'
/** With fewer literals, the reading is at fault. */
const LITERALS_MIN = 120

/** Expressions that are slow over texts that no client can send. The rest of the line is the reason. */
const TRUSTED = new Map([['server/src/http/reference/operation.ts', 'It colours JSON that we have written ourselves.']])
/** Files that build expressions at run time. */
const MADE = new Map([
  ['cli/src/dev/secrets.ts', 'From the pattern of the contract.'],
  ['cli/src/matching/flexmatch.ts', 'From fixed parts.'],
  ['cli/src/watch/logs.ts', 'From the filter that the user of the command has typed.'],
  ['contract/src/registry-image.ts', 'From fixed parts.'],
  ['contract/src/services.ts', 'From the paths of the contract. One segment is read once.'],
  ['contract/src/visible-text.ts', 'From another expression, with other flags.'],
  ['protocols/src/agones/rest.ts', 'From the paths of the calls.'],
  ['server/src/addresses/ip-data/folder.ts', 'From a fixed list of words.'],
  ['server/src/backup/game/game-tables.ts', 'From fixed parts.'],
  ['server/src/cloud/exports.ts', 'From fixed parts.'],
  [
    'server/src/cloud/player-data/export.ts',
    'From an id and an address in canonical form, with special characters escaped.',
  ],
  ['server/src/edge/proxy/request-class.ts', 'From the paths of the contract.'],
  ['server/src/edge/proxy/trunks.ts', 'From fixed parts.'],
  ['server/src/http/sockets.ts', 'From the paths of the contract.'],
  ['server/src/objects/s3/xml.ts', 'From names of elements that the code fixes.'],
  ['server/src/ratings/players.ts', 'From fixed parts.'],
  ['server/src/ratings/reads.ts', 'From fixed parts.'],
  ['server/src/text/tsig-key.ts', 'From fixed parts. It reads a file of the operator.'],
  ['server/src/tokens/credentials.ts', "From the labels of the platform's tokens."],
])

function sources(): { path: string; text: string }[] {
  return globSync(SOURCES, { cwd: ROOT })
    .filter((path) => !path.endsWith('.test.ts'))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

/** The patterns of a schema, at any depth. */
function patternsOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([name, value]) => {
    if (name === 'pattern' && typeof value === 'string') return [value]
    if (name === 'patternProperties') return [...Object.keys(value as object), ...patternsOf(Object.values(value))]
    return patternsOf(value)
  })
}

test('the time of every regular expression grows with its text, and not faster', () => {
  let count = 0
  const excused = new Set<string>()
  for (const { path, text } of sources()) {
    for (const { source, flags, line } of literalsOf(text)) {
      count++
      const slow = findSlow(new RegExp(source, flags))
      if (slow === null) continue
      assert.ok(TRUSTED.has(path), `${path}:${line} /${source}/${flags}: ${JSON.stringify(slow)}`)
      excused.add(path)
    }
  }
  assert.ok(count >= LITERALS_MIN, `only ${count} were found`)
  assert.deepEqual([...excused], [...TRUSTED.keys()], 'what is no longer slow needs no excuse')
})

test('the time of every pattern of a schema grows with its text, and not faster', () => {
  const patterns = new Set(OPERATIONS.flatMap(({ params, query, body }) => patternsOf([params, query, body])))
  assert.ok(patterns.size > 5)
  for (const pattern of patterns) assert.equal(findSlow(new RegExp(pattern, 'u')), null, pattern)
})

test('no expression is built from the text of a client', () => {
  const found = sources().filter(({ text }) => /\bnew RegExp\(|[^.\w]RegExp\(/.test(text))
  assert.deepEqual(found.map(({ path }) => path).sort(), [...MADE.keys()])
})

test('an expression whose time grows with the square of the text, or faster, is found', () => {
  const slow = [
    /0+$/,
    /^(a+)+$/,
    /^(?:\w|[a-c])*!$/,
    /^\s*\s*x/,
    /^sh: .*: .*not found$/,
    /(?<!b)x*$/,
    /;\s*q=.*x.*y$/i,
  ]
  for (const expression of slow) assert.notEqual(findSlow(expression), null, String(expression))
  const quick = [/^0*1$/, /^[a-z]+(?:-[a-z]+)*$/, /^[^,]*,[^,]*$/, /\bx\b/]
  for (const expression of quick) assert.equal(findSlow(expression), null, String(expression))
})

test('a literal is distinguished from a division, a string and a comment', () => {
  const text = [
    'const a = b / c / d; // /no/',
    "const e = '/no/' + f[0] / 2 / g() / 1",
    'const h = i[0]! / j()! / k! / 2; if (l!==/yes0/) m = !/yes0/.test(n)',
    'if (/yes[/]1/g.test(x)) return /yes\\/2/u',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a template is what is read here.
    'const t = `/no/ ${/yes3/.source} ${`${{ a: 1 }.a / 2 / 3}`} /no/` /* /no/ */',
  ].join('\n')
  assert.deepEqual(literalsOf(text), [
    { line: 3, source: 'yes0', flags: '' },
    { line: 3, source: 'yes0', flags: '' },
    { line: 4, source: 'yes[/]1', flags: 'g' },
    { line: 4, source: 'yes\\/2', flags: 'u' },
    { line: 5, source: 'yes3', flags: '' },
  ])
})
