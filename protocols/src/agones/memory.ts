// What survives a crash of the program that serves an Agones game server. It is the program's own text.
import type { Counter, List } from './counts.ts'
import type { Entries } from './metadata.ts'
import type { ObjectParts, Players } from './object.ts'
import type { State } from './states.ts'

type Numbered<T> = { [Name in keyof T]: T[Name] extends bigint ? string : T[Name] }

/** Counters and capacities as decimal text: they are 64-bit integers. */
export type Memory = {
  state: State
  labels: Entries
  annotations: Entries
  counters: Record<string, Numbered<Counter>>
  lists: Record<string, List>
  players: Numbered<Players> | null
  /** When a reservation ends; null: never, or there is none. */
  reserve_end_ts: number | null
  has_closed: boolean
  is_kept: boolean
}

type Kept = Pick<ObjectParts, 'state' | 'labels' | 'annotations' | 'counters' | 'lists' | 'players'>

export function memoryOf(
  { state, labels, annotations, counters, lists, players }: Kept,
  rest: Pick<Memory, 'reserve_end_ts' | 'has_closed' | 'is_kept'>,
): Memory {
  return {
    state,
    labels,
    annotations,
    counters: Object.fromEntries(
      [...counters].map(([name, { count, capacity }]) => [name, { count: `${count}`, capacity: `${capacity}` }]),
    ),
    lists: Object.fromEntries(lists),
    players: players === null ? null : { ids: players.ids, capacity: `${players.capacity}` },
    ...rest,
  }
}

export function partsOf({ state, labels, annotations, counters, lists, players }: Memory): Kept {
  return {
    state,
    labels,
    annotations,
    counters: new Map(
      Object.entries(counters).map(([name, { count, capacity }]) => [
        name,
        { count: BigInt(count), capacity: BigInt(capacity) },
      ]),
    ),
    lists: new Map(Object.entries(lists)),
    players: players === null ? null : { ids: players.ids, capacity: BigInt(players.capacity) },
  }
}
