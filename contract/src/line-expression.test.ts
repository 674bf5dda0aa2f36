import assert from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import { EXPRESSION_LENGTH_MAX, ExpressionError, readLineExpression } from './line-expression.ts'

test('the usual lines of servers match, and others do not', () => {
  const cases: [expression: string, line: string, is_match: boolean][] = [
    ['ready', 'Server is ready.', true],
    ['^ready', 'Server is ready.', false],
    ['ready\\.$', 'Server is ready.', true],
    ['listening on (port )?\\d+', 'listening on 4000', true],
    ['listening on (port )?\\d+', 'listening on port x', false],
    ['^\\[[^\\]]*\\] (Done|Started) \\(\\d+\\.\\d+s\\)!', '[12:00:01] Done (3.14s)! For help, type "help"', true],
    ['(?:a|b)*c', 'ababc', true],
    ['^(a|b)+$', 'abac', false],
    ['^\\S+\\s\\w*$', 'a b_1', true],
    ['^[a\\-z]+$', 'a-z', true],
    ['^[\\d.-]+$', '1.5-2', true],
    ['^$', '', true],
    ['', 'anything', true],
    ['é', 'café', true],
    ['a|', '', true],
  ]
  for (const [expression, line, is_match] of cases) {
    assert.strictEqual(readLineExpression(expression).matches(line), is_match, `${expression} on ${line}`)
  }
})

test('what is no expression is refused with its place', () => {
  for (const text of [
    '(',
    ')',
    'a)',
    '[a',
    '[z-a]',
    '[\\d-z]',
    '[\\D]',
    '*',
    'a**',
    'a+?',
    'a{2}',
    '\\',
    '\\q',
    '\\1',
  ]) {
    assert.throws(() => readLineExpression(text), ExpressionError, text)
  }
  for (const text of ['(?=a)', '(?<n>a)', '(?i)a']) assert.throws(() => readLineExpression(text), /character 3/, text)
  assert.throws(() => readLineExpression('a'.repeat(EXPRESSION_LENGTH_MAX + 1)), /200 characters/)
})

/** Expressions of the supported syntax over few letters. */
const expression = fc.letrec((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\w', '\\d', '^', '$', '\\.'),
    fc.tuple(tie('node'), fc.constantFrom('*', '+', '?')).map(([inner, mark]) => `(?:${inner})${mark}`),
    fc.tuple(tie('node'), tie('node')).map(([one, other]) => `${one}${other}`),
    fc.tuple(tie('node'), tie('node')).map(([one, other]) => `(${one}|${other})`),
  ),
})).node as fc.Arbitrary<string>

test('every expression matches the lines that the engine of the language matches', () => {
  fc.assert(
    fc.property(expression, fc.stringMatching(/^[ab1.]{0,12}$/), (text, line) => {
      fc.pre(text.length <= EXPRESSION_LENGTH_MAX)
      assert.strictEqual(readLineExpression(text).matches(line), new RegExp(text).test(line))
    }),
    { numRuns: 5_000 },
  )
})

test('the steps of a match are bounded by the lengths of expression and line', () => {
  // The engine of the language needs 2 ** 40 steps for these.
  for (const text of ['^(a+)+$', '^(a|a)*$', '(.*)*x', `${'a?'.repeat(50)}${'a'.repeat(50)}$`]) {
    assert.strictEqual(readLineExpression(text).matches(`${'a'.repeat(40)}!`), false, text)
  }
  assert.strictEqual(readLineExpression('x').matches(`${'a'.repeat(512)}x`), false)
})
