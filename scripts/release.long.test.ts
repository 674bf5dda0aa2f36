// The dry release of this checkout: everything of a version, and nothing that leaves this machine.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { releaseNotes } from './release/notes.ts'
import { otherVersions, rootVersion, writeVersions } from './release/versions.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const RELEASE_MS_MAX = 300_000
const run = promisify(execFile)

test('npm run release makes the packages, notes, bill of materials and checksums, and publishes nothing', async (t) => {
  const to = join(folderOf(t), 'release')
  const version = rootVersion(ROOT)
  const args = [join(ROOT, 'scripts/release.ts'), '--to', to, '--no-image']
  const { stdout } = await run(process.execPath, args, { cwd: ROOT, timeout: RELEASE_MS_MAX })
  assert.match(stdout, /Nothing was published/)
  assert.match(
    stdout,
    /npm publish \S+musterhost-platform-[^\n]+\n +npm publish \S+musterhost-\d/,
    'the platform first',
  )

  const packages = ['musterhost', 'musterhost-platform', 'musterhost-sdk']
  for (const name of packages) {
    const manifest = manifestOf(join(to, `${name}-${version}.tgz`))
    assert.deepEqual([manifest.name, manifest.version], [name, version])
    assert.equal(manifest.scripts?.install ?? manifest.scripts?.postinstall, undefined, 'no install script')
  }
  assert.equal(manifestOf(join(to, `musterhost-${version}.tgz`)).optionalDependencies?.['musterhost-platform'], version)

  const sums = readFileSync(join(to, 'SHA256SUMS'), 'utf8').trim().split('\n')
  const others = readdirSync(to).filter((file) => file !== 'SHA256SUMS')
  const expected = others.map((file) => `${sha256(join(to, file))}  ${file}`)
  assert.deepEqual(sums.toSorted(), expected.toSorted())
  assert.ok(sums.length >= packages.length + 2, sums.join('\n'))

  assert.match(readFileSync(join(to, 'release-notes.md'), 'utf8'), new RegExp(`^# Muster ${version}\n\n### Added\n`))
  const bill = JSON.parse(readFileSync(join(to, `muster-${version}.cdx.json`), 'utf8')) as {
    bomFormat: string
    components: { name: string; version: string; purl?: string }[]
  }
  assert.equal(bill.bomFormat, 'CycloneDX')
  const fastify = bill.components.find((component) => component.name === 'fastify')
  assert.match(fastify?.purl ?? '', /^pkg:npm\/fastify@\d/)
  assert.equal(
    bill.components.find((component) => component.name === 'knip'),
    undefined,
    'tools are not shipped',
  )
})

test('every package.json and the lock file have the version of the root', () => {
  assert.deepEqual(otherVersions(ROOT), [])
})

test('a new version at the root is written everywhere, once', (t) => {
  const copy = folderOf(t)
  for (const name of ['package.json', 'package-lock.json']) cpSync(join(ROOT, name), join(copy, name))
  const { workspaces } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { workspaces: string[] }
  const named = workspaces.filter((name) => !name.includes('*'))
  for (const name of named) {
    mkdirSync(join(copy, name), { recursive: true })
    cpSync(join(ROOT, name, 'package.json'), join(copy, name, 'package.json'))
  }
  const manifest = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8')) as object
  writeFileSync(join(copy, 'package.json'), JSON.stringify({ ...manifest, version: '9.8.7' }))
  const changed = [...named.map((name) => `${name}/package.json`), 'package-lock.json']
  assert.deepEqual(writeVersions(copy).toSorted(), changed.toSorted())
  assert.deepEqual(writeVersions(copy), [])
})

test('a version without changes in the changelog is not released', () => {
  assert.throws(() => releaseNotes('## [0.1.0]\n\n- a\n', '0.2.0'), /has no section ## \[0\.2\.0\]/)
  assert.throws(() => releaseNotes('## [0.2.0]\n\n## [0.1.0]\n\n- a\n', '0.2.0'), /names no change/)
  assert.equal(releaseNotes('## [0.2.0] - today\n\n- b\n\n## [0.1.0]\n\n- a\n', '0.2.0'), '# Muster 0.2.0\n\n- b\n')
})

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-release-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

type Manifest = {
  name: string
  version: string
  scripts?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

function manifestOf(packed: string): Manifest {
  const args = ['--extract', '--gzip', '--to-stdout', '--file', packed, 'package/package.json']
  return JSON.parse(execFileSync('tar', args, { encoding: 'utf8' })) as Manifest
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
