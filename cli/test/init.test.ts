// muster init: what it writes, and what it refuses.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readProject } from '../src/project/project.ts'
import { TEMPLATE_NAMES } from '../src/templates/templates.ts'
import { createMuster } from './program.ts'

test('each template is a project without mistakes, whose imports are there', async (t) => {
  const muster = createMuster(t)
  for (const template of TEMPLATE_NAMES) {
    const { code, stdout, stderr } = await muster.run(['init', template, '--template', template, '--name', 'my-game'])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^my-game: \d+ files in .*\n {2}cd \S+\n {2}muster deploy\n$/)
    const project = readProject(join(muster.cwd, template))
    assert.equal(project.game, 'my-game')
    const files = filesOf(join(muster.cwd, template))
    for (const name of ['README.md', '.gitignore', 'muster.yaml', 'muster.schema.json', 'site/index.html']) {
      assert.ok(files.includes(name), `${template} has no ${name}`)
    }
    // Without one, each visit of the page asks for a file that is not there.
    assert.match(
      readFileSync(join(project.folder, 'site/index.html'), 'utf8'),
      /<link rel="icon" href="data:/,
      template,
    )
    const servers = files.filter((file) => /^server\/(?:game\.js|main\.py)$/.test(file))
    assert.ok(template === 'static' || servers.length > 0, template)
    for (const file of servers) {
      const text = readFileSync(join(project.folder, file), 'utf8')
      for (const word of ['joined', 'left']) assert.match(text, new RegExp(`player .* ${word}, .* here`), file)
    }
    const [first] = readFileSync(project.file, 'utf8').split('\n')
    assert.equal(first, '# yaml-language-server: $schema=./muster.schema.json')
    for (const file of files) {
      const text = readFileSync(join(project.folder, file), 'utf8')
      assert.doesNotMatch(text, /GAME_(?:NAME|TITLE)/, file)
      for (const [, path] of text.matchAll(/ from '(\.\/[^']+)'/g)) {
        const target = join(file, '..', path!)
        // The build command copies the client of Socket.IO.
        if (target !== 'site/socket.io.js') assert.ok(files.includes(target), `${template}: ${file} imports ${path}`)
      }
    }
  }
})

test('--isolated adds the headers that a page with threads needs', async (t) => {
  const muster = createMuster(t)
  for (const template of TEMPLATE_NAMES) {
    const { code, stderr } = await muster.run(['init', template, '--template', template, '--isolated'])
    assert.equal(code, 0, stderr)
    const { cdn } = readProject(join(muster.cwd, template)).version
    const [route, ...others] = cdn?.routes ?? []
    assert.deepEqual([route?.glob, others], ['**', []], template)
    const headers = route!.middlewares.flatMap(({ kind }) => kind.custom_headers?.headers ?? [])
    assert.deepEqual(headers, [
      { name: 'Cross-Origin-Opener-Policy', value: 'same-origin' },
      { name: 'Cross-Origin-Embedder-Policy', value: 'require-corp' },
    ])
    assert.equal(cdn?.not_found, template === 'static' ? '404.html' : undefined)
  }
})

test('a file that exists is never overwritten, and then nothing is written', async (t) => {
  const muster = createMuster(t)
  mkdirSync(join(muster.cwd, 'mine', 'site'), { recursive: true })
  writeFileSync(join(muster.cwd, 'mine', 'site', 'index.html'), 'mine')
  const { code, stderr } = await muster.run(['init', 'mine', '--template', 'static'])
  assert.equal(code, 2)
  assert.match(stderr, /has these files already: site\/index\.html\./)
  assert.deepEqual(filesOf(join(muster.cwd, 'mine')), ['site/index.html'])
  assert.equal(readFileSync(join(muster.cwd, 'mine', 'site', 'index.html'), 'utf8'), 'mine')
})

test('without a terminal nothing is asked: the error names the option', async (t) => {
  const muster = createMuster(t)
  const nothing = await muster.run(['init', 'a'])
  assert.equal(nothing.code, 2)
  assert.match(nothing.stderr, /--template node-ws\|/)
  const misspelled = await muster.run(['init', 'a', '--template', 'node-sw'])
  assert.equal(misspelled.code, 2)
  assert.match(misspelled.stderr, /Did you mean node-ws\?/)
  const unnamed = await muster.run(['init', 'a', '--template', 'static', '--name', 'No Name'])
  assert.equal(unnamed.code, 2)
  assert.match(unnamed.stderr, /--name: at most 16/)
  assert.deepEqual(readdirSync(muster.cwd), [])
})

test('the result as JSON names the files', async (t) => {
  const muster = createMuster(t)
  const written = (await muster.json(['init', 'My Page!', '--template', 'static'])) as { game: string; files: string[] }
  assert.equal(written.game, 'my-page')
  assert.deepEqual(written.files, filesOf(join(muster.cwd, 'My Page!')))
})

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
}
