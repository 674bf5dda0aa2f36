// What our documents point at is there: every relative link and picture, every heading that a link names, and every
// source file that ARCHITECTURE and CONTRIBUTING name.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const NOT_OURS = /(^|\/)(node_modules|\.git|\.muster[^/]*)(\/|$)/
const LINK = /\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g
/** A word in backticks that ends like a source file. */
const SOURCE = /`([a-z0-9/.-]+\.(?:ts|md|json|yaml))`/g
/** Named as files of a data folder, or as examples. */
const NOT_SOURCES = new Set(['keys/seals.json', 'kebab-case.ts', 'x.test.ts'])

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

test('every source file that a document names exists', async () => {
  const sources = (await filesOf('**/*.{ts,md,json,yaml}')).map((file) => `/${file.replaceAll('\\', '/')}`)
  const missing: string[] = []
  let count = 0
  for (const document of ['ARCHITECTURE.md', 'CONTRIBUTING.md']) {
    const text = await readFile(join(ROOT, document), 'utf8')
    for (const [, name = ''] of text.matchAll(SOURCE)) {
      if (NOT_SOURCES.has(name)) continue
      count++
      if (!sources.some((source) => source.endsWith(`/${name}`))) missing.push(`${document}: ${name}`)
    }
  }
  assert.ok(count > 50, `${count} names`)
  assert.deepEqual(missing, [])
})
