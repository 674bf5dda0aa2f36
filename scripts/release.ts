// `npm run release`: makes everything of the version that the package.json at the root names, and publishes nothing. With
// `--publish` it then tags the commit and publishes the three packages. docs/releasing.md says what comes before and after.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { buildImages } from './release/image.ts'
import { releaseNotes } from './release/notes.ts'
import { otherVersions, rootVersion } from './release/versions.ts'

const ROOT = join(import.meta.dirname, '..')
const CHECKSUMS = 'SHA256SUMS'
/** An SBOM of all workspaces is below 2 MB. */
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

const { values } = parseArgs({
  options: {
    publish: { type: 'boolean', default: false },
    to: { type: 'string', default: 'dist/release' },
    'no-image': { type: 'boolean', default: false },
  },
})
try {
  release()
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}

function release(): void {
  const version = rootVersion(ROOT)
  const tag = `v${version}`
  const other = otherVersions(ROOT)
  if (other.length > 0) throw new Error(`Not of version ${version}: ${other.join(', ')}. Run: npm run generate`)
  const notes = releaseNotes(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), version)
  if (values.publish) requirePublishable(tag)

  const to = resolve(values.to)
  if (existsSync(to) && readdirSync(to).length > 0 && !existsSync(join(to, CHECKSUMS))) {
    throw new Error(`${to} has files that are not of a release. Name another folder: npm run release -- --to FOLDER`)
  }
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { recursive: true })
  run(process.execPath, ['scripts/pack.ts', to])
  packSdk(to)
  writeFileSync(join(to, 'release-notes.md'), notes)
  writeFileSync(join(to, `muster-${version}.cdx.json`), billOfMaterials())
  const { missing } = values['no-image'] ? { missing: ['No image: --no-image.'] } : buildImages(ROOT, to, version)
  const files = readdirSync(to).sort()
  const sums = files.map((file) => `${sha256(join(to, file))}  ${file}\n`)
  writeFileSync(join(to, CHECKSUMS), sums.join(''))

  console.log(`\nMuster ${version} in ${to}:`)
  for (const file of [...files, CHECKSUMS]) console.log(`  ${file}`)
  for (const sentence of missing) console.log(sentence)
  // The command names the platform, so the platform comes first.
  const packages = ['musterhost-platform', 'musterhost', 'musterhost-sdk'].map((name) =>
    join(to, `${name}-${version}.tgz`),
  )
  const steps: [string, string[]][] = [
    ['git', ['tag', '--annotate', tag, '--file', join(to, 'release-notes.md'), '--cleanup=verbatim']],
    ...packages.map((file): [string, string[]] => ['npm', ['publish', file, '--access', 'public']]),
  ]
  if (!values.publish) console.log('\nNothing was published. "npm run release -- --publish" also runs:')
  for (const [program, args] of steps) {
    console.log(`  ${program} ${args.join(' ')}`)
    if (values.publish) run(program, args)
  }
  console.log(`Then push the tag, and make a release of it with these files: git push origin ${tag}`)
}

/** The packages must be of the commit that the tag names. */
function requirePublishable(tag: string): void {
  const changes = read('git', ['status', '--porcelain']).trim()
  if (changes !== '') throw new Error(`The checkout has changes that are not committed:\n${changes}`)
  if (read('git', ['tag', '--list', tag]).trim() !== '') {
    throw new Error(`The tag ${tag} exists. Write the next version into package.json, and run: npm run generate`)
  }
}

/** From a copy: `npm pack` replaces the manifest of the SDK for a moment. */
function packSdk(to: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'muster-sdk-'))
  try {
    for (const name of ['sdk', 'tsconfig.json', 'LICENSE']) {
      cpSync(join(ROOT, name), join(folder, name), { recursive: true })
    }
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    execFileSync('npm', ['pack', '--silent', '--pack-destination', to], { cwd: join(folder, 'sdk'), stdio: 'inherit' })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Everything that npm installs for those who run the platform, and what the packages include, in CycloneDX. */
function billOfMaterials(): string {
  const workspaces = ['contract', 'protocols', 'server', 'sdk', 'cli', 'hub'].flatMap((name) => ['--workspace', name])
  return read('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--omit=dev', ...workspaces])
}

function run(program: string, args: string[]): void {
  execFileSync(program, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
}

function read(program: string, args: string[]): string {
  return execFileSync(program, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: OUTPUT_BYTES_MAX })
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
