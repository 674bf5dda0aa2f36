import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rootHint } from './root-hint.ts'

test('a line that refuses root gets the remedy, in the words of several servers', () => {
  for (const line of [
    '"root" execution of the PostgreSQL server is not permitted.',
    'Please do not run this program as root!',
    "Error: don't run as root",
    'Refusing to run as root. Use --allow-root.',
    'FATAL: This must not be run as the root user',
    'Running as root without --no-sandbox is not supported.',
  ]) {
    assert.match(rootHint(['starting', line]) ?? '', /user: "1000:1000"/, line)
  }
  for (const line of [
    'running as root',
    'This must be run as root',
    'permission denied: you are not root',
    'root folder is /srv, not /',
    'cannot open socket',
  ]) {
    assert.equal(rootHint([line]), null, line)
  }
})
