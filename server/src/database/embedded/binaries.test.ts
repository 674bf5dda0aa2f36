import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { findBinaries, makeLinks } from './binaries.ts'
import { requireProgram } from './program.ts'

test('links that an install script did not make are made, and those that are there stay', async (t) => {
  const package_folder = await mkdtemp(join(tmpdir(), 'muster-links-'))
  t.after(() => rm(package_folder, { recursive: true }))
  const folder = join(package_folder, 'native')
  mkdirSync(join(folder, 'lib'), { recursive: true })
  writeFileSync(join(folder, 'lib', 'libpq.so.5.18'), 'library')
  const links = [{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }]
  writeFileSync(join(folder, 'pg-symlinks.json'), JSON.stringify(links))
  await Promise.all([makeLinks(folder), makeLinks(folder)])
  await makeLinks(folder)
  assert.equal(readFileSync(join(folder, 'lib', 'libpq.so.5'), 'utf8'), 'library')
})

test('the programs that npm brought run', async () => {
  const binaries = await findBinaries()
  assert.match(await requireProgram(binaries.postgres, ['--version']), /^postgres \(PostgreSQL\) 18\./)
  assert.match(await requireProgram(binaries.initdb, ['--version']), /^initdb \(PostgreSQL\) 18\./)
})
