// With what an Agones game server starts: counters and lists of the version config, and what its allocation says, which stands
// in the configuration of the lobby: `{"agones": {"labels": {}, "annotations": {}, "counters": {}, "lists": {}}}`.
import { asRecord, type JsonRecord } from '../http-body.ts'
import type { ProtocolOptions } from '../protocol.ts'
import { type Counter, type List, type StartChange, startCounter, startList } from './counts.ts'
import { ENTRIES_MAX, type Entries } from './metadata.ts'

const DEFAULT_CAPACITY = 1000

export function metadataOf(config: unknown): { labels: Entries; annotations: Entries } {
  const { labels, annotations } = allocationOf(config)
  return { labels: textsOf(labels), annotations: textsOf(annotations) }
}

export function countersOf({ counters = {} }: ProtocolOptions, config: unknown): Map<string, Counter> {
  return new Map(
    Object.entries(counters).map(([name, { count = 0, capacity = DEFAULT_CAPACITY }]) => {
      const counter = { count: BigInt(count), capacity: BigInt(capacity) }
      const change = changeOf(allocationOf(config).counters, name)
      return [name, change === null ? counter : startCounter(counter, change)]
    }),
  )
}

export function listsOf({ lists = {} }: ProtocolOptions, config: unknown): Map<string, List> {
  return new Map(
    Object.entries(lists).map(([name, { values = [], capacity = DEFAULT_CAPACITY }]) => {
      const list = { values, capacity }
      const change = changeOf(allocationOf(config).lists, name)
      return [name, change === null ? list : startList(list, change)]
    }),
  )
}

function allocationOf(config: unknown): JsonRecord {
  return asRecord(asRecord(config)?.agones) ?? {}
}

function textsOf(value: unknown): Entries {
  const texts = Object.entries(asRecord(value) ?? {}).filter((entry): entry is [string, string] => {
    return typeof entry[1] === 'string'
  })
  return Object.fromEntries(texts.slice(0, ENTRIES_MAX))
}

function changeOf(changes: unknown, name: string): StartChange | null {
  const all = asRecord(changes)
  return all !== null && Object.hasOwn(all, name) ? (asRecord(all[name]) as StartChange | null) : null
}
