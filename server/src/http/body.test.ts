// Runs in a process of its own: what ran before would change the processor time that it measures.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, type ErrorCode } from '@musterhost/contract'
import fc from 'fast-check'
import { cpuMsOf } from '../../test/support/cpu-time.ts'
import { parseBody } from './body.ts'

const codeOf = (text: string): ErrorCode | 'taken' => {
  try {
    parseBody(Buffer.from(text), 'exact')
    return 'taken'
  } catch (error) {
    assert.ok(error instanceof ApiError)
    return error.code
  }
}

/**
 * The least of some runs: of as many as it takes to be below `enough`, or of the most. A run parses the text `times` times:
 * the kernel counts processor time in steps of 4 ms.
 */
function msOf(text: string, options: { enough: number; runs_max: number; times: number }): number {
  const { enough, runs_max, times } = options
  let least = Number.POSITIVE_INFINITY
  for (let run = 0; run < runs_max && least > enough; run++) {
    const ms = cpuMsOf(() => {
      for (let time = 0; time < times; time++) codeOf(text)
    })
    least = Math.min(least, ms)
  }
  return least
}

test('time to read a body grows with its length, whatever it is made of', () => {
  const bombs: Record<string, (count: number) => string> = {
    'zeros of a fraction': (count) => `{"a":1.${'0'.repeat(count)}1}`,
    'zeros before an exponent': (count) => `{"a":1${'0'.repeat(count)}1e-${count}}`,
    digits: (count) => `{"a":${'9'.repeat(count)}}`,
    'an exponent': (count) => `{"a":1e${'9'.repeat(count)}}`,
    brackets: (count) => '['.repeat(count),
    nesting: (count) => `${'['.repeat(count)}${']'.repeat(count)}`,
    'nested members': (count) => `${'{"a":'.repeat(count)}1${'}'.repeat(count)}`,
    members: (count) => `{${Array.from({ length: count / 10 }, (_, index) => `"k${index}":1`).join(',')}}`,
    'one member again and again': (count) => `{${'"a":1,'.repeat(count / 10)}"a":1}`,
    'a long name': (count) => `{"${'k'.repeat(count)}":1}`,
    escapes: (count) => `{"a":"${'\\u0041'.repeat(count / 10)}"}`,
    'numbers that are rounded': (count) => `[${'99999999999999999,'.repeat(count / 20)}1]`,
    spaces: (count) => `{${' '.repeat(count)}`,
  }
  for (const [name, bomb] of Object.entries(bombs)) {
    const small = msOf(bomb(50_000), { enough: 0, runs_max: 5, times: 8 }) / 8
    // Eight times the length: sixty-four times the time where it grows with the square.
    const enough = Math.max(25, small * 30)
    const large = msOf(bomb(400_000), { enough, runs_max: 40, times: 1 })
    assert.ok(large < enough, `${name}: ${small} ms, then ${large} ms`)
  }
})

test('a number is taken exactly when it is what a double holds, however it is written', () => {
  const digits = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n })
  const zeros = fc.nat({ max: 30 })
  fc.assert(
    fc.property(digits, zeros, zeros, (number, after_point, tens) => {
      const is_exact = number <= BigInt(Number.MAX_SAFE_INTEGER) && number >= BigInt(Number.MIN_SAFE_INTEGER)
      const fraction = after_point === 0 ? '' : `.${'0'.repeat(after_point)}`
      const shifted = number === 0n ? '0e-9' : `${number}${'0'.repeat(tens)}e-${tens}`
      const spellings = [`${number}${fraction}`, shifted]
      for (const text of spellings) {
        assert.equal(codeOf(`{"a":${text}}`), is_exact ? 'taken' : 'VALIDATION_ERROR', text)
        if (is_exact) assert.deepEqual(parseBody(Buffer.from(`{"a":${text}}`), 'exact'), { a: Number(number) })
      }
      // A whole number and something that no double sees.
      if (is_exact && number > 2n ** 20n) {
        assert.equal(codeOf(`{"a":${number}.${'0'.repeat(20 + after_point)}1}`), 'VALIDATION_ERROR')
      }
    }),
    { numRuns: 3_000 },
  )
})

test('any bytes are a value or a refusal', () => {
  const pieces = fc.constantFrom(
    ...'[]{}:,"\\0129.eE-+ \n',
    'null',
    'true',
    '"a"',
    '\\u0000',
    '\\ud800',
    '__proto__',
    '/*',
  )
  const texts = fc.array(pieces, { maxLength: 40 }).map((parts) => Buffer.from(parts.join('')))
  fc.assert(
    fc.property(
      fc.oneof(
        texts,
        fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      ),
      (bytes) => {
        for (const numbers of ['exact', 'rounded'] as const) {
          try {
            parseBody(bytes, numbers)
          } catch (error) {
            assert.ok(error instanceof ApiError && ['API_BAD_BODY', 'VALIDATION_ERROR'].includes(error.code))
          }
        }
      },
    ),
    { numRuns: 10_000 },
  )
})

test('a name that is repeated in a refusal is cut, however long it was sent', () => {
  const name = `💡${'x'.repeat(60_000)}`
  for (const inner of ['"\\u0000"', '{"__proto__":1}', '9007199254740993']) {
    try {
      parseBody(Buffer.from(`{"${name}":{"${name}":${inner}}}`), 'exact')
      assert.fail(inner)
    } catch (error) {
      assert.ok(error instanceof ApiError && error.code === 'VALIDATION_ERROR', String(error))
      assert.ok(JSON.stringify([error.message, error.metadata]).length < 3_000, inner)
    }
  }
})
