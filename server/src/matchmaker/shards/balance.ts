// How the shards are spread over the processes that live: evenly, so that the numbers of two processes differ by one at most.
// Every process computes the same plan from the same view, and carries out its own part of it. Pure.
import { SHARD_COUNT } from '../../journal/pages.ts'

export type BalanceView = {
  /** The process that asks. */
  me: string
  /** Processes that live and do not leave, in the order of their start. */
  eligible: readonly string[]
  /** Processes that live: these, and those that leave. The shards of all others are free. */
  living: ReadonlySet<string>
  /** The writer by shard. */
  holders: readonly (string | null)[]
}

/** `take`: free shards for this process. `give`: shards of this process, each with the process that gets it. */
export type BalancePlan = { take: number[]; give: { shard: number; to: string }[] }

/** Free shards are taken first. Only what is still uneven afterwards is given away. */
export function planOf({ me, eligible, living, holders }: BalanceView): BalancePlan {
  const plan: BalancePlan = { take: [], give: [] }
  if (eligible.length === 0) return plan
  const held = new Map(eligible.map((writer) => [writer, 0]))
  const free: number[] = []
  for (const [shard, holder] of holders.entries()) {
    if (holder === null || !living.has(holder)) free.push(shard)
    else if (held.has(holder)) held.set(holder, held.get(holder)! + 1)
  }
  const shares = sharesOf(eligible, held)
  const next = free.values()
  for (const writer of eligible) {
    while (held.get(writer)! < shares.get(writer)!) {
      const { value: shard } = next.next()
      if (shard === undefined) break
      held.set(writer, held.get(writer)! + 1)
      if (writer === me) plan.take.push(shard)
    }
  }
  // What each process lacks now comes from those that have too many, in the order of the shards.
  const lacking = eligible.flatMap((writer) => {
    const count = Math.max(0, shares.get(writer)! - held.get(writer)!)
    return Array.from({ length: count }, () => writer)
  })
  for (const [shard, holder] of holders.entries()) {
    if (lacking.length === 0) break
    if (holder === null || !living.has(holder)) continue
    const is_surplus = !held.has(holder) || held.get(holder)! > shares.get(holder)!
    if (!is_surplus) continue
    if (held.has(holder)) held.set(holder, held.get(holder)! - 1)
    const to = lacking.shift()!
    if (holder === me) plan.give.push({ shard, to })
  }
  return plan
}

/** Who has the most gets the larger shares, so that no shard moves without need. */
function sharesOf(eligible: readonly string[], held: ReadonlyMap<string, number>): Map<string, number> {
  const least = Math.floor(SHARD_COUNT / eligible.length)
  const larger_count = SHARD_COUNT % eligible.length
  const by_held = [...eligible].sort((a, b) => held.get(b)! - held.get(a)!)
  return new Map(by_held.map((writer, index) => [writer, least + (index < larger_count ? 1 : 0)]))
}
