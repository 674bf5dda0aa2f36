// The owner of a package that a printed command or an import names runs code on the machine of the reader. So each name is
// ours, or that of a package in a lock file.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const MODULES = 'node_modules/'
/** The packages that docs/releasing.md registers, and the scope of the workspaces. */
const OURS = ['musterhost', 'musterhost-platform', 'musterhost-sdk']
const OUR_SCOPE = '@musterhost/'
const TEXTS =
  '{*.md,.ci/*,bench,cli,contract,deploy,docs,examples,hub,runtime,scripts,sdk,server}{,/**/*.{ts,tsx,js,mjs,cjs,json,md,html,yaml,yml,txt,service,sh},/**/Containerfile,/run}'
/** Made by programs, or lists of what others have named. */
const SKIPPED = /(^|\/)(node_modules|dist|build|screenshots|\.muster)\/|package-lock\.json$|openapi\.json$|\.gen\.ts$/
/** These hold the forbidden names themselves. */
const SELF = /^scripts\/(package-names\.test|check-arrows\.test|arrows\/read)\.ts$/

/** `npx NAME`, `npx -p NAME`, `npm install NAME`, `npm exec NAME`. Options in front of the name are skipped. */
const COMMAND =
  /\b(?:npx|npm (?:install|i|exec|create|init|add)|pnpm add|yarn add|bunx)((?: +--prefix \S+| +-{1,2}(?!-|prefix\b)[\w-]+(?:=\S+)?)*) +([@\w][\w@./-]*)/g
const IMPORT = /(?:\bfrom |\bimport ?\(?)['"]([^'"\s$]+)['"]|\brequire\(['"]([^'"\s$]+)['"]\)/g

const texts = globSync(TEXTS, { cwd: ROOT })
  .filter((path) => /\.\w+$|Containerfile$|\/run$/.test(path) && !SKIPPED.test(path) && !SELF.test(path))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

test('every package that a printed command installs or runs is ours, or in the lock file', () => {
  const found = texts.flatMap(({ path, text }) =>
    [...text.matchAll(COMMAND)].map(([line, , name = '']) => ({ path, line, name })),
  )
  assert.ok(found.length >= 10, `${found.length} commands in ${texts.length} files`)
  const known = knownNames()
  const strange = found.filter(({ name }) => !isLocalFile(name) && !known(nameOf(name)))
  assert.deepEqual(
    strange.map(({ path, line }) => `${path}: ${line}`),
    [],
  )
})

test('nothing that is printed runs npx muster, whose name belongs to another', () => {
  const found = texts.flatMap(({ path, text }) =>
    [...text.matchAll(/\bnpx (?:-\S+ )*(?:(?:-p|--package) \S+ )*muster\b.*|(?:-p|--package)[ =]muster\b.*/g)]
      .filter(([line]) => !/^npx (?:(?:-p|--package) (?:musterhost|http)\S* )+muster\b/.test(line))
      .map(([line]) => `${path}: ${line}`),
  )
  assert.deepEqual(found, [])
})

test('every imported package is ours, or in the lock file', () => {
  const known = knownNames()
  const code = texts.filter(({ path }) => /\.(ts|tsx|js|mjs|cjs|md|html)$/.test(path))
  const found = code.flatMap(({ path, text }) =>
    [...text.matchAll(IMPORT)].map(([, specifier = '', required]) => ({ path, specifier: required ?? specifier })),
  )
  assert.ok(found.length > 5_000, `${found.length} imports`)
  const strange = found.filter(
    ({ specifier }) => /^[@a-z]/.test(specifier) && !specifier.includes(':') && !known(nameOf(specifier)),
  )
  assert.deepEqual(
    strange.map(({ path, specifier }) => `${path}: ${specifier}`),
    [],
  )
})

function knownNames(): (name: string) => boolean {
  const paths = globSync('{,runtime/,examples/*/}package-lock.json', { cwd: ROOT }).flatMap((file) => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as { packages: object }
    return Object.keys(packages).filter((path) => path.includes(MODULES))
  })
  const installed = paths.map((path) => path.slice(path.lastIndexOf(MODULES) + MODULES.length))
  const names = new Set([...OURS, ...installed, ...builtinModules])
  return (name) => names.has(name) || name.startsWith(OUR_SCOPE)
}

/** `@scope/name/path` is `@scope/name`; `name@1.2.3` is `name`. */
function nameOf(specifier: string): string {
  const [first = '', second = ''] = specifier.split('/')
  return (first.startsWith('@') ? `${first}/${second}` : first).replace(/(?<=.)@.*$/, '')
}

/** A file or an address, of which no registry is asked. */
function isLocalFile(name: string): boolean {
  return /^\.|\.tgz$|^https?:/.test(name)
}
