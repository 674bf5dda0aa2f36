// Each rule of the prose check finds what it is for, and leaves code alone.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { lacking } from '../server/test/run/optional-programs.ts'
import { checkFile, checkPassage, SENTENCE_WORDS_MAX } from './prose/check.ts'
import { FILES, IDENTIFIERS } from './prose/names.ts'
import { read } from './prose/passages.ts'
import { proseOf, sentencesOf } from './prose/sentences.ts'
import { WORDS } from './prose/words.ts'

/** What the check says of a file, a line each. */
function found(file: string, text: string): string[] {
  return checkFile(file, text).map(({ line, found: words }) => `${line}: ${words}`)
}

function passagesOf(file: string, text: string): string[] {
  return read(file, text).passages.map(({ line, text: words }) => `${line}: ${words}`)
}

const LONG = `${'word '.repeat(SENTENCE_WORDS_MAX)}end.`

for (const rule of WORDS) {
  test(`the rule ${rule.pattern} finds its example and not its counter-examples`, () => {
    const file = `${rule.within?.[0] ?? ''}notes.md`
    const kind = rule.only === undefined ? 'document' : 'comment'
    const finds = (text: string) => checkPassage(file, { kind, line: 1, text })
    assert.ok(finds(rule.example).some(({ advice }) => advice.includes(rule.instead)))
    for (const text of rule.counter_examples ?? []) assert.deepEqual(finds(text), [], text)
    assert.ok(rule.why !== '')
  })
}

test('an old name is found as an identifier and as a file, and not in a string', () => {
  for (const { old, within } of IDENTIFIERS) {
    for (const name of old) {
      const file = `${within?.[0] ?? ''}planted.ts`
      assert.deepEqual(found(file, `\nexport type Planted = { member: ${name} }\n`), [`2: ${name}`])
      assert.deepEqual(found(file, `export const planted = '${name}'\n`), [])
    }
  }
  for (const name of FILES.flatMap(({ old }) => old)) {
    assert.deepEqual(found(`server/src/room/${name}`, 'export const one = 1\n'), [`1: ${name}`])
  }
})

test('comments of every kind of file are read, with their lines', () => {
  const words = 'Stored all the same.'
  assert.deepEqual(found('a.ts', `// One.\n// ${words}\n`), ['2: all the same'])
  assert.deepEqual(found('a.ts', `/**\n * One.\n * ${words}\n */\nexport const a = 1 // ${words}\n`), [
    '3: all the same',
    '5: all the same',
  ])
  assert.deepEqual(found('a.ts', '// Stored all\n// the same.\n'), ['1: all the same'])
  assert.deepEqual(found('a.css', `a {\n  /* ${words} */\n}\n`), ['2: all the same'])
  assert.deepEqual(found('a.yaml', `#!/bin/sh\n# ${words}\na: 1\n`), ['2: all the same'])
  assert.deepEqual(found('a.md', `# ${words}\n\n- ${words}\n\n| ${words} | b |\n`), [
    '1: all the same',
    '3: all the same',
    '5: all the same',
  ])
})

test('a comment of a source begins with a noun or a verb', () => {
  for (const word of ['Of', 'That', 'Those', 'Them', 'Whose']) {
    const words = `${word} the last row.`
    for (const comment of [`// ${words}`, `/** ${words} */`, `/**\n * ${words}\n * More.\n */`]) {
      const line = comment.includes('\n') ? 2 : 1
      assert.deepEqual(found('server/src/a.ts', `${comment}\nexport const a = 1\n`), [`${line}: ${word}`])
    }
    assert.deepEqual(found('server/src/a.ts', `// Rows. ${words}\nfail('${words}')\n`), [])
    assert.deepEqual(found('server/test/a.ts', `// ${words}\n`), [])
  }
})

test('messages are read whole, also where they are added up or have values in them', () => {
  assert.deepEqual(found('a.ts', "log('the file is stored all ' +\n  'the same here')\n"), ['1: all the same'])
  const template = `log(\`the file $\{name} is stored all the same\`)\n`
  assert.deepEqual(found('a.ts', template), ['1: all the same'])
  assert.deepEqual(found('a.ts', 'html`<p>It is stored</p><p>all the same here</p>`\n'), ['1: all the same'])
})

test('strings that are code are not prose', () => {
  for (const code of [
    'sql`select his from whoever where of it, is true`',
    "query('select his from whoever where his = 1')",
    "import 'all the same'",
    "type A = 'all the same'",
    "run('--all --the-same -x')",
    "match('{ he: him }')",
    "write('listen\\n  whoever may\\n  use his port')",
  ]) {
    assert.deepEqual(found('a.ts', `${code}\n`), [], code)
  }
  assert.deepEqual(found('a.md', '```sh\nall the same\n```\n\nThe word `all the same` is code.\n'), [])
})

test('a sentence over the limit is found, in a comment, a message and a table cell', () => {
  const beginning = 'word word word word word word word word ...'
  assert.deepEqual(found('a.ts', `// Short.\n// ${LONG}\n`), [`2: ${beginning}`])
  assert.deepEqual(found('a.ts', `fail('${LONG}')\n`), [`1: ${beginning}`])
  assert.deepEqual(found('a.md', `| a | ${LONG} |\n| --- | --- |\n`), [`1: ${beginning}`])
  assert.deepEqual(found('a.md', `${LONG.replace('end.', 'word.')} ${LONG.replace(/^word /, '')}\n`), [
    `1: ${beginning}`,
  ])
})

test('list items, cells, paragraphs and headings are sentences of their own', () => {
  const half = 'word '.repeat(SENTENCE_WORDS_MAX / 2 + 1)
  for (const text of [`- ${half}\n- ${half}`, `| ${half} | ${half} |`, `${half}\n\n${half}`, `# ${half}\n${half}`]) {
    assert.deepEqual(found('a.md', text), [])
  }
  assert.equal(found('a.md', `${half}\n${half}`).length, 1)
})

test('sentences end at their marks, and not at abbreviations, code or addresses', () => {
  const count = (text: string) => sentencesOf(proseOf(text)).map(({ words }) => words)
  assert.deepEqual(count('One two. Three (four.) Five!'), [2, 2, 1])
  assert.deepEqual(count('A name, e.g. this one, i.e. two etc. and more.'), [10])
  assert.deepEqual(count('`a. b c` is one. See https://a.example/b?c. Then 1.5 s.'), [3, 2, 3])
})

test('links keep their words, and rules of tables and comments of tools are left out', () => {
  assert.deepEqual(passagesOf('a.md', '| [a b](c.md) | d |\n| --- | --- |\n'), ['1: a b', '1: d'])
  assert.deepEqual(passagesOf('a.ts', '// biome-ignore lint: he has a reason\nexport const a = 1\n'), [])
})

test('the generated part of a page is left out, and lines after it are still counted', () => {
  const page = 'Before.\n<!-- generated: a b -->\n\nWhoever.\n<!-- end of generated: a b -->\nAfter.'
  assert.deepEqual(passagesOf('docs/page.md', page), ['1: Before.', '6: After.'])
})

test('the prose of this repository keeps the rules', (t) => {
  const missing = lacking('git')
  if (missing !== null) return t.skip(missing)
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, 'check-prose.ts')], {
    encoding: 'utf8',
  })
  assert.equal(stderr, '')
  assert.equal(status, 0)
  assert.match(stdout, /^Prose: \d+ findings in \d{3,} files\.$/m)
})
