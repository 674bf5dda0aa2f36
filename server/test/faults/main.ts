// `npm run faults -- --rounds N --seed S --fault KIND`: harms a running platform under load and checks that nothing
// acknowledged is lost. Exits with 1 when something is wrong. KIND is `kill` unless given; `owner` takes those of
// an owner in turn. `disk-full`, `owner` and `owner-without-edges` need root.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { mountSmallDisk } from '../support/small-disk.ts'
import { DISK_BYTES, runDiskFull } from './disk-full.ts'
import { runKillRounds } from './kill-rounds.ts'
import { operationTable, type Round, roundLine, slowRounds, timeTable } from './report.ts'
import type { RunOptions, RunResult } from './run.ts'
import { inFirewall, OWNER_FAULTS, type OwnerFault, runShardOwner } from './shard-owner.ts'

const SEED_MAX = 2 ** 32 - 1

type Tell = (number: number, round: Round) => void
const FAULTS: Record<string, (options: RunOptions, tell: Tell) => Promise<RunResult>> = {
  kill: runKillRounds,
  ...Object.fromEntries(OWNER_FAULTS.map((fault) => [fault, ofOwner([fault])])),
  owner: ofOwner(OWNER_FAULTS),
  'disk-full': onSmallDisk,
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '6' },
    seed: { type: 'string', default: String(randomInt(SEED_MAX)) },
    fault: { type: 'string', default: 'kill' },
  },
})
const rounds = wholeNumber('rounds', values.rounds)
const seed = wholeNumber('seed', values.seed)
const run = FAULTS[values.fault]
if (run === undefined) throw new Error(`--fault takes one of ${Object.keys(FAULTS).join(', ')}`)

print(`--fault ${values.fault} --rounds ${rounds} --seed ${seed}`)
const result = await run({ rounds, seed }, (number, round) =>
  // A run that is ended early has then said what it found.
  print(roundLine(number, rounds, round), ...round.findings.map((finding) => `WRONG ${finding}`)),
)
print('', ...timeTable(result.rounds), '', ...operationTable(result.history), '')
print(`${result.journal_row_count} rows of the journal held to the laws.`)
const wrong = [...result.findings, ...slowRounds(result.rounds)]
for (const finding of wrong) print(`WRONG ${finding}`)
print(wrong.length === 0 ? 'Nothing is wrong.' : `${wrong.length} findings; --seed ${seed} repeats the faults.`)
if (wrong.length > 0) process.exitCode = 1

/** Cutting the owner off from the edges needs root, and a network of its own. */
function ofOwner(faults: readonly OwnerFault[]) {
  return async (options: RunOptions, tell: Tell): Promise<RunResult> => {
    if (faults.includes('owner-without-edges')) inFirewall()
    return runShardOwner({ ...options, faults }, tell)
  }
}

async function onSmallDisk(options: RunOptions, tell: Tell): Promise<RunResult> {
  const skip = (reason?: string): void => print(`disk-full cannot run: ${reason}`)
  const disk = await mountSmallDisk({ skip }, DISK_BYTES)
  if (disk === null) process.exit(1)
  try {
    return await runDiskFull(disk, options, tell)
  } finally {
    await disk.unmount()
  }
}

function print(...lines: string[]): void {
  for (const line of lines) console.log(line)
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text)
  if (Number.isInteger(number) && number >= 1 && number <= SEED_MAX) return number
  throw new Error(`--${name} takes a whole number from 1 to ${SEED_MAX}`)
}
