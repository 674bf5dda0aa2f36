import { test } from 'node:test'
import { examineForgery, fuzzTokens } from './tokens.ts'

/** Always the same forgeries: a run that fails fails again. `npm run fuzz tokens` takes others. */
const CAMPAIGN = { count: 10_000, seed: 1 }

test('no token is accepted but those that were issued, letter for letter', (t) => fuzzTokens(t, CAMPAIGN))

test('claims of an access token with the signature of a player token are refused', () =>
  examineForgery({ first: 0, second: 6, is_foreign: false, steps: [{ how: 'exchange', part: 3 }] }))
