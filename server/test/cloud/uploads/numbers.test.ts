import assert from 'node:assert/strict'
import test from 'node:test'
import type { ErrorBody, ErrorDetail } from '@musterhost/contract'
import { startPlatform } from '../../support/platform.ts'
import { newGame } from '../steps.ts'

test('lengths of 64 bits', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { game_id } = await newGame(platform)

  async function prepare(content_length: string) {
    const response = await fetch(`${platform.api_url}/cloud/games/${game_id}/cdn/sites`, {
      method: 'POST',
      headers: { authorization: `Bearer ${platform.token}`, 'content-type': 'application/json' },
      body: `{"display_name":"S","files":[{"path":"a","content_length":${content_length}}]}`,
    })
    return { status: response.status, body: (await response.json()) as ErrorBody }
  }

  await t.test('a length that no double holds is refused with exactly the digits that were sent', async () => {
    for (const [digits, reason] of [
      ['18446744073709551615', 'too_high'],
      ['18446744073709551616', 'too_high'],
      ['9007199254740993', 'too_high'],
      ['1e400', 'too_high'],
      ['-9007199254740993', 'too_low'],
      ['1.00000000000000000001', 'not_exact'],
      ['1e-400', 'not_exact'],
      ['9007199254740990.9999999', 'not_exact'],
    ] as const) {
      const { status, body } = await prepare(digits)
      assert.equal(status, 400, digits)
      assert.equal(body.code, 'VALIDATION_ERROR')
      const [error, ...more] = body.metadata.errors as ErrorDetail[]
      assert.equal(more.length, 0)
      assert.deepEqual(error!.path, ['files', '0', 'content_length'])
      assert.equal(error!.reason, reason, digits)
      assert.ok(error!.message.includes(` ${digits},`), error!.message)
      assert.ok(body.message.includes(digits))
    }
  })

  await t.test('a length beyond the policy is refused with its digits', async () => {
    for (const digits of ['9007199254740991', '100000000001']) {
      const { status, body } = await prepare(digits)
      assert.equal(status, 400)
      assert.ok(body.message.includes(digits), body.message)
      assert.equal((body.metadata.errors as ErrorDetail[])[0]!.reason, 'too_high')
    }
  })

  await t.test('a whole number may be written in every way of JSON, a text or a negative number is none', async () => {
    for (const text of ['5', '1.0', '1e3', '0', '10.00e-1', '12E+1', '-0', '0e999']) {
      assert.equal((await prepare(text)).status, 200, text)
    }
    for (const [text, reason] of [
      ['"5"', 'wrong_type'],
      ['-1', 'too_low'],
      ['1.5', 'wrong_type'],
    ] as const) {
      const { status, body } = await prepare(text)
      assert.equal(status, 400)
      assert.equal((body.metadata.errors as ErrorDetail[])[0]!.reason, reason, text)
    }
  })

  await t.test('a number of thousands of digits is repeated in short', async () => {
    const { status, body } = await prepare('9'.repeat(100_000))
    assert.equal(status, 400)
    assert.ok(body.message.length < 300 && body.message.includes('9'.repeat(64)))
  })
})
