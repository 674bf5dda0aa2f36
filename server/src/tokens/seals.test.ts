import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openRing, rotateSeals, SEAL_RING, SPREAD_MS } from './ring.ts'
import { openSeals } from './seals.ts'

const NOW_MS = 1_800_000_000_000
const TEXT = 'a secret, ä'

async function newFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-seals-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

test('a seal opens for its purpose only, and does not reveal its text', async (t) => {
  const seals = await openSeals(await newFolder(t))
  const seal = seals.seal('version 1', TEXT, NOW_MS)
  assert.equal(seals.open('version 1', seal), TEXT)
  assert.notEqual(seals.seal('version 1', TEXT, NOW_MS), seal)
  assert.ok(!Buffer.from(seal.split('.')[2]!, 'base64url').includes('secret'))
  assert.throws(() => seals.open('version 2', seal))
})

test('a changed seal does not open', async (t) => {
  const seals = await openSeals(await newFolder(t))
  const seal = seals.seal('x', TEXT, NOW_MS)
  const [format, kid, closed] = seal.split('.') as [string, string, string]
  const bytes = Buffer.from(closed, 'base64url')
  for (let index = 0; index < bytes.length; index++) {
    const changed = Buffer.from(bytes)
    changed[index]! ^= 1
    assert.throws(() => seals.open('x', `${format}.${kid}.${changed.toString('base64url')}`))
  }
  for (const wrong of ['', 'x', `s2.${kid}.${closed}`, `${format}.${kid}.`, `${format}.nobody.${closed}`, `${seal}.`]) {
    assert.throws(() => seals.open('x', wrong))
  }
})

test('after a rotation old seals open, and new seals use the new key once every process knows it', async (t) => {
  const folder = await newFolder(t)
  const seals = await openSeals(folder)
  const old = seals.seal('x', TEXT, NOW_MS)
  await rotateSeals(folder, { now_ms: NOW_MS })
  await seals.refresh()
  assert.ok(seals.seal('x', TEXT, NOW_MS + SPREAD_MS - 1).startsWith(seals.prefix(NOW_MS)))
  const fresh = seals.seal('x', TEXT, NOW_MS + SPREAD_MS)
  assert.ok(fresh.startsWith(seals.prefix(NOW_MS + SPREAD_MS)) && !fresh.startsWith(seals.prefix(NOW_MS)))
  const other = await openSeals(folder)
  for (const seal of [old, fresh]) assert.equal(other.open('x', seal), TEXT)
})

test('processes that start at once share one ring of seals; a damaged one is not replaced', async (t) => {
  const folder = await newFolder(t)
  const rings = await Promise.all(Array.from({ length: 8 }, () => openRing(folder, SEAL_RING)))
  for (const ring of rings) assert.deepEqual(ring, rings[0])
  const path = join(folder, 'seals.json')
  await writeFile(path, '{}', { mode: 0o600 })
  await assert.rejects(openSeals(folder), /seals\.json is not a key ring.*secrets/)
  assert.equal(await readFile(path, 'utf8'), '{}')
})
