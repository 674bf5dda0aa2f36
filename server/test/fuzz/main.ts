// `npm run fuzz edge -- --streams N --seed S`, `fuzz archives -- --archives N`, `fuzz tokens -- --tokens N`. Without a seed
// each run takes another one. A case that breaks a law is made as small as it goes and printed as a test.
import { randomInt } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { parseArgs } from 'node:util'
import { fuzzArchives } from './archives.ts'
import type { Campaign } from './campaign.ts'
import { fuzzEdge } from './edge/run.ts'
import { fuzzTokens } from './tokens.ts'

type Fuzzing = { option: string; count: number; run: (t: TestContext, campaign: Campaign) => Promise<void> }

const FUZZINGS: Record<string, Fuzzing> = {
  edge: { option: 'streams', count: 10_000, run: fuzzEdge },
  archives: { option: 'archives', count: 10_000, run: fuzzArchives },
  tokens: { option: 'tokens', count: 100_000, run: fuzzTokens },
}
const SEED_MAX = 2 ** 31 - 1
const COUNT_MAX = 100_000_000

const [name = '', ...args] = process.argv.slice(2)
const fuzzing = FUZZINGS[name]
if (fuzzing === undefined) {
  for (const [other, { option }] of Object.entries(FUZZINGS))
    console.error(`npm run fuzz ${other} -- --${option} N --seed S`)
  process.exit(2)
}
const { option, run } = fuzzing
const { values } = parseArgs({ args, options: { [option]: { type: 'string' }, seed: { type: 'string' } } })
const count = numberOf(option, values[option], fuzzing.count, COUNT_MAX)
const seed = numberOf('seed', values.seed, randomInt(SEED_MAX), SEED_MAX)
test(`fuzz ${name} -- --${option} ${count} --seed ${seed}`, { timeout: Number.POSITIVE_INFINITY }, (t) =>
  run(t, { count, seed }),
)

function numberOf(option: string, text: string | boolean | undefined, absent: number, max: number): number {
  if (text === undefined) return absent
  const number = Number(text)
  if (Number.isSafeInteger(number) && number >= 1 && number <= max) return number
  console.error(`--${option} takes a number from 1 to ${max}.`)
  process.exit(2)
}
