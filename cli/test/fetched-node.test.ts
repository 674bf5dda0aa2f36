// The Node that the command fetches for the platform, with a registry on loopback and a small package in place of Node.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Failure } from '../src/failure.ts'
import { fetchNode, type PinnedNode } from '../src/fetched-node.ts'
import { startRegistry } from './loopback-registry.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const NAME = 'node-linux-test'
const VERSION = '26.0.0'

test('Node is fetched once, and the second command needs no network', async (t) => {
  const { pinned, env, cache } = await prepare(t)
  const program = await fetchNode(pinned, env)
  assert.equal(program, join(cache, 'muster', `${NAME}-${VERSION}`, 'node'))
  assert.equal(execFileSync(program, { encoding: 'utf8' }), 'the new Node\n')
  assert.deepEqual(readdirSync(join(cache, 'muster', `${NAME}-${VERSION}`)), ['node'], 'no part is left')
  assert.equal(await fetchNode(pinned, { ...env, npm_config_registry: 'http://127.0.0.1:9/' }), program)
})

test('a package with another hash is refused, and nothing of it is left', async (t) => {
  const { pinned, env, cache } = await prepare(t)
  const other = { ...pinned, integrity: `sha512-${createHash('sha512').update('other').digest('base64')}` }
  await assert.rejects(fetchNode(other, env), /has another hash than this program expects/)
  assert.deepEqual(readdirSync(join(cache, 'muster', `${NAME}-${VERSION}`)), [])
})

test('a registry that does not have it leads to a sentence with the remedy', async (t) => {
  const { pinned, env } = await prepare(t)
  await assert.rejects(fetchNode({ ...pinned, version: '27.0.0' }, env), (error: Failure) => {
    assert.ok(error instanceof Failure)
    assert.match(error.message, /^npm could not fetch node-linux-test 27\.0\.0: /)
    assert.match(error.remedy ?? '', /Install Node 24 or newer/)
    return true
  })
})

test('a Node that lacks a library of the system leads to a sentence with the remedy, and is not kept', async (t) => {
  const says =
    'node: error while loading shared libraries: libatomic.so.1: cannot open shared object file: No such file'
  const { pinned, env, cache } = await prepare(t, `echo '${says}' >&2; exit 127`)
  await assert.rejects(fetchNode(pinned, env), (error: Failure) => {
    assert.match(error.message, /does not start here: .*libatomic\.so\.1: cannot open/)
    assert.match(error.remedy ?? '', /Install Node 24 or newer/)
    return true
  })
  assert.deepEqual(readdirSync(join(cache, 'muster', `${NAME}-${VERSION}`)), [])
})

async function prepare(
  t: TestContext,
  script = "echo 'the new Node'",
): Promise<{ pinned: PinnedNode; env: NodeJS.ProcessEnv; cache: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-node-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const source = join(folder, 'package')
  mkdirSync(join(source, 'bin'), { recursive: true })
  writeFileSync(join(source, 'package.json'), JSON.stringify({ name: NAME, version: VERSION }))
  writeFileSync(join(source, 'bin/node'), `#!/bin/sh\n${script}\n`, { mode: 0o644 })
  const file = join(folder, `${NAME}.tgz`)
  execFileSync('tar', ['--create', '--gzip', '--file', file, '--directory', folder, 'package'])
  const integrity = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
  const cache = join(folder, 'cache')
  const env = {
    ...process.env,
    XDG_CACHE_HOME: cache,
    npm_config_registry: await startRegistry(t, ROOT, [file]),
    npm_config_cache: join(folder, 'npm-cache'),
    npm_config_fetch_retries: '0',
  }
  return { pinned: { name: NAME, version: VERSION, integrity }, env, cache }
}
