import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readConfig } from '../config/read-config.ts'
import { createKeys } from '../tokens/keys.ts'
import { adminToken, makeFolders } from './folders.ts'

const NOW_MS = Date.parse('2026-11-01T00:00:00Z')

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-folders-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

test('only the folders on the way of lobbies can be entered by other users', (t) => {
  const data_dir = join(temporaryFolder(t), 'data')
  makeFolders(data_dir)
  makeFolders(data_dir)
  const modes = Object.fromEntries(
    ['.', 'keys', 'objects', 'logs', 'builds', 'lobbies'].map((name) => [
      name,
      statSync(join(data_dir, name)).mode & 0o777,
    ]),
  )
  assert.deepEqual(modes, { '.': 0o711, keys: 0o700, objects: 0o700, logs: 0o700, builds: 0o711, lobbies: 0o711 })
})

test('a data folder that cannot be made is refused with a sentence that names the remedy', (t) => {
  const file = join(temporaryFolder(t), 'file')
  writeFileSync(file, '')
  assert.throws(() => makeFolders(join(file, 'data')), {
    name: 'StartError',
    message: /cannot be used .* set MUSTER_DATA/,
  })
})

test('the admin token stays the same, does not expire, and is readable by the owner only', (t) => {
  const config = readConfig({ MUSTER_DATA: temporaryFolder(t) })
  const keys = createKeys()
  const { token, file } = adminToken(config, keys, NOW_MS)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(readFileSync(file, 'utf8'), `${token}\n`)
  assert.equal(adminToken(config, keys, NOW_MS * 2).token, token)
  assert.equal(keys.verify(token, NOW_MS * 2).kind, 'access')
})

test('an admin token of removed keys, or a damaged one, is replaced', (t) => {
  const config = readConfig({ MUSTER_DATA: temporaryFolder(t) })
  const old = adminToken(config, createKeys(), NOW_MS).token
  const keys = createKeys()
  const replaced = adminToken(config, keys, NOW_MS)
  assert.notEqual(replaced.token, old)
  writeFileSync(replaced.file, 'half a tok')
  assert.equal(keys.verify(adminToken(config, keys, NOW_MS).token, NOW_MS).kind, 'access')
})
