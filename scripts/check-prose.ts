// `node scripts/check-prose.ts [PATH...]`, a part of `npm run check`: whether comments, strings, descriptions and
// documents keep the rules of prose/words.ts and prose/names.ts, whether a sentence is too long, and whether a member of
// the contract has no description. With paths it lists the findings in these files and folders.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { checkFile, type Finding } from './prose/check.ts'
import { checkDescriptions } from './prose/descriptions.ts'
import { isReadable } from './prose/passages.ts'

const ROOT = resolve(import.meta.dirname, '..')

const NOT_READ = [
  { path: 'scripts/prose/words.ts', why: 'It lists the words.' },
  { path: 'scripts/prose/names.ts', why: 'It lists the names.' },
  { path: 'scripts/check-prose.test.ts', why: 'It breaks the rules on purpose.' },
  { path: 'server/src/database/migrations/', why: 'A migration is never changed once it is on main.' },
  { path: 'CHANGELOG.md', why: 'Entries for users are history, and are not rewritten.' },
]

const paths = process.argv.slice(2).map((path) => relative(ROOT, resolve(path)))
const files = committedFiles(paths)
const findings = files.flatMap((file) => checkFile(file, readFileSync(join(ROOT, file), 'utf8')))
const sources = files.filter((file) => file.startsWith('contract/src/'))
if (sources.length > 0) findings.push(...checkDescriptions(ROOT, sources))
list(findings)
console.log(`Prose: ${findings.length} findings in ${files.length} files.`)

function committedFiles(within: readonly string[]): string[] {
  const output = execFileSync('git', ['ls-files', '--', ...within], { cwd: ROOT, encoding: 'utf8' })
  return output
    .split('\n')
    .filter((file) => isReadable(file) && !NOT_READ.some(({ path }) => file.startsWith(path)))
    .filter((file) => existsSync(join(ROOT, file)))
}

function list(faults: readonly Finding[]): void {
  for (const { file, line, found, advice } of faults) console.error(`${file}:${line} "${found}" ${advice}`)
  if (faults.length > 0) process.exitCode = 1
}
