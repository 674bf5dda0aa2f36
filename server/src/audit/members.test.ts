import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedMembers, SECRET } from './members.ts'

test('only the members whose value changed are listed, with both values', () => {
  const before = { version_id: 'a', lobby_count_max: 1, domains: ['x'], is_public: true }
  const after = { version_id: 'b', lobby_count_max: 1, domains: ['x', 'y'], note: 'new' }
  assert.deepEqual(changedMembers(before, after), [
    { member: 'version_id', before: 'a', after: 'b' },
    { member: 'domains', before: '["x"]', after: '["x","y"]' },
    { member: 'is_public', before: 'true' },
    { member: 'note', after: 'new' },
  ])
})

test('a secret is shown as changed and without its value, by its marker and by its name', () => {
  const names = ['password', 'captcha_secret_key', 'cloud_token', 'code', 'verification_headers', 'password_hash']
  for (const name of names) {
    assert.deepEqual(changedMembers({ [name]: 'old' }, { [name]: 'new' }), [{ member: name, is_secret: true }], name)
  }
  assert.deepEqual(changedMembers({}, { user: SECRET }), [{ member: 'user', is_secret: true }])
  assert.deepEqual(changedMembers({}, { token_id: 'id', version_id: 'id' }), [
    { member: 'token_id', after: 'id' },
    { member: 'version_id', after: 'id' },
  ])
})

test('an event is bounded, however many members change and however long they are', () => {
  const many = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, index) => [`m${index}`, '\ud83d\ude00'.repeat(999)]),
  )
  const changes = changedMembers({}, many)
  assert.equal(changes.length, 32)
  assert.deepEqual(changes.at(-1), { member: '969 more members', is_cut: true })
  assert.ok(changes.every(({ is_cut }) => is_cut))
  assert.ok(JSON.stringify(changes).length < 32 * 1_200)
  assert.ok(changedMembers({}, { text: `a${'\ud83d\ude00'.repeat(300)}` })[0]!.after!.isWellFormed())
})
