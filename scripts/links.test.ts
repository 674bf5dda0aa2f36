// The targets of our documents exist: every relative link and picture, every heading that a link names, and every
// path in backticks in ARCHITECTURE.md, CONTRIBUTING.md and docs/design.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const NOT_OURS = /(^|\/)(node_modules|\.git|\.muster[^/]*)(\/|$)/
const LINK = /\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g
/** A path in backticks: a source file by its ending, a folder by its slash. */
const PATH = /`([a-z0-9/.-]+(?:\.(?:ts|md|json|yaml)|\/))`/g
/** Paths of a data folder, addresses, and examples of names. */
const NOT_SOURCES = new Set([
  '.ended/',
  '.well-known/',
  'builds.layers/',
  'builds.manifests/',
  'builds/',
  'compiled/',
  'ip-feeds/',
  'kebab-case.ts',
  'keys/',
  'keys/seals.json',
  'lobbies/.output-pipes/',
  'lobbies/.unfinished/',
  'objects/damaged/',
  'postgres/',
  'run.json',
  'x.test.ts',
])

async function filesOf(pattern: string): Promise<string[]> {
  const files: string[] = []
  for await (const file of glob(pattern, { cwd: ROOT, exclude: (path) => NOT_OURS.test(path) })) files.push(file)
  return files.sort()
}

/** As forges make them of headings. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} (.*)$/gm)]
  return new Set(
    headings.map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

test('every link of every document leads somewhere', async () => {
  const documents = await filesOf('**/*.md')
  assert.ok(documents.includes('README.md') && documents.includes(join('docs', 'operation.md')), documents.join(' '))
  let count = 0
  const broken: string[] = []
  for (const document of documents) {
    const text = await readFile(join(ROOT, document), 'utf8')
    for (const [, inText, inTag] of text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(LINK)) {
      const link = inText ?? inTag ?? ''
      if (/^[a-z]+:/.test(link)) continue
      count++
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? join(ROOT, document) : join(ROOT, dirname(document), path)
      const isThere = existsSync(target)
      const hasAnchor = !isThere || anchor === undefined || anchorsOf(await readFile(target, 'utf8')).has(anchor)
      if (!isThere || !hasAnchor) broken.push(`${document}: ${link}`)
    }
  }
  assert.ok(count > 20, `${count} links`)
  assert.deepEqual(broken, [])
})

test('every file and folder that a document about the code names exists', async () => {
  const files = (await filesOf('**/*')).map((file) => `/${file.replaceAll('\\', '/')}`)
  const missing: string[] = []
  let count = 0
  for (const document of ['ARCHITECTURE.md', 'CONTRIBUTING.md', ...(await filesOf('docs/design/**/*.md'))]) {
    const text = await readFile(join(ROOT, document), 'utf8')
    for (const [, path = ''] of text.matchAll(PATH)) {
      if (NOT_SOURCES.has(path)) continue
      count++
      const exists = files.some((file) => (path.endsWith('/') ? file.includes(`/${path}`) : file.endsWith(`/${path}`)))
      if (!exists) missing.push(`${document}: ${path}`)
    }
  }
  assert.ok(count > 100, `${count} paths`)
  assert.deepEqual(missing, [])
})
