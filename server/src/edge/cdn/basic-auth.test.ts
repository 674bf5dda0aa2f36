import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { decoyHash } from './basic-auth.ts'

const hashOf = (cost: string) => `$2b$${cost}$${'a'.repeat(53)}`
const seedOf = (name: string) => createHash('sha256').update(name).digest()

test('unknown names cost as much as existing ones, and each always the same', () => {
  const users = new Map([
    ['ada', hashOf('04')],
    ['bob', hashOf('12')],
    ['cid', hashOf('12')],
  ])
  const counts: Record<string, number> = {}
  const NAMES = 3_000
  for (let index = 0; index < NAMES; index++) {
    const hash = decoyHash(users, seedOf(`name ${index}`))
    assert.equal(decoyHash(users, seedOf(`name ${index}`)), hash)
    assert.match(hash, /^\$2b\$(04|12)\$[./A-Za-z0-9]{53}$/)
    const cost = hash.slice(4, 6)
    counts[cost] = (counts[cost] ?? 0) + 1
  }
  const share = (counts['04'] ?? 0) / NAMES
  assert.ok(share > 0.28 && share < 0.38, `a third of the users, and ${share} of the others`)
})

test('on a site without users a name costs the default', () => {
  assert.match(decoyHash(new Map(), seedOf('ada')), /^\$2b\$10\$/)
})
