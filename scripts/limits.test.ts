// What docs/design/constants.md is made of.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitsOf } from './limits.ts'

test('a limit has its comment, and its value in the unit that its name says', () => {
  const limits = limitsOf(
    'server/src/room/file.ts',
    `/** Bytes of a head. */
export const HEAD_BYTES_MAX = 16 * 1024
const WAIT_MS_MAX = 2 * 60_000 // Time to wait for a head.
/**
 * Requests that wait,
 * of all clients.
 */
const REQUESTS_MAX: number = 1_000 + 24 * 2
const OTHERS_MAX =
  REQUESTS_MAX / 2
const STRANGE_MAX = REQUESTS_MAX + ports.length
/** Bytes of a list. */
const LIST_BYTES_MAX = 3 * 1024 ** 2
const PORT_FIRST = 26_000`,
  )
  assert.deepEqual(
    limits.map(({ name, value, description }) => [name, value, description]),
    [
      ['HEAD_BYTES_MAX', '16 KiB', 'Bytes of a head.'],
      ['WAIT_MS_MAX', '2 min', 'Time to wait for a head.'],
      ['REQUESTS_MAX', '1,048', 'Requests that wait, of all clients.'],
      ['OTHERS_MAX', '524', ''],
      ['STRANGE_MAX', '`REQUESTS_MAX + ports.length`', ''],
      ['LIST_BYTES_MAX', '3 MiB', 'Bytes of a list.'],
    ],
  )
})
