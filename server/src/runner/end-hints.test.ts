import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endHint } from './end-hints.ts'

test('an end that points to a common mistake gets the remedy, and no other end gets a sentence', () => {
  const failed = { reason: 'exit', exit_code: 1 } as const
  for (const line of [
    "OSError: [Errno 30] Read-only file system: 'server.log'",
    "Error: EROFS: read-only file system, open 'world.db'",
    'java.nio.file.FileSystemException: ./logs: Read-only file system',
  ]) {
    assert.match(endHint([line, 'bye'], failed, false) ?? '', /write into the folder that HOME names/, line)
    assert.match(endHint([line], { reason: 'signal', exit_code: 134 }, true) ?? '', /HOME/, 'also later')
    assert.equal(endHint([line], { reason: 'stopped', exit_code: 1 }, true), null)
  }
  const finished = { reason: 'exit', exit_code: 0 } as const
  assert.match(endHint([], finished, false) ?? '', /stay in the foreground.* `standard_input: true`/)
  assert.equal(endHint([], finished, true), null)
  assert.equal(endHint(['no map'], failed, false), null)
  assert.match(endHint(["don't run as root"], finished, false) ?? '', /user: "1000:1000"/)
})
