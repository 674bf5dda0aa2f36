// The protocol of fence.ts and of shard.ts's reload, in every interleaving: what two or three writers, the wire and the
// database can do, one step at a time, over all states that can be reached. A writer that is stopped (SIGSTOP) is
// one whose next step comes late, so the model covers it.
import assert from 'node:assert'
import { type TestContext, test } from 'node:test'

type Protocol = {
  /** How a writer that wants to write (again) finds out what there is. */
  takeover: 'append then read' | 'read only'
  /** What the database does with an append at a seq that is taken, or was: by its key alone it cannot tell. */
  append: 'compare' | 'compare keys' | 'wherever'
  /** When the fate of a lost batch is asked. */
  ask: 'after the takeover' | 'at once'
}
const OURS: Protocol = { takeover: 'append then read', append: 'compare', ask: 'after the takeover' }

/** What may happen at most; beyond these the states do not end. */
type Bounds = {
  writers: number
  batches: number
  takeovers: number
  lost: number
  failed: number
  crashes: number
  removals: number
}

const STATES_MAX = 3_000_000
const TAKEOVER = 'takeover'

type Row = readonly [name: string, what: string]
/** An append under way. It lands or never does, whether somebody waits for it or not. */
type Append = { seq: number; name: string; what: string; memory: string; writer: number }
type Phase = 'off' | 'looking' | 'taking' | 'asking' | 'loading' | 'writing' | 'appending' | 'deposed'
type Writer = {
  phase: Phase
  name: string
  /** Takeovers begun: every one has a fresh name. */
  takeovers: number
  batches: number
  /** The last seq that it knows; what it holds in memory, which is to be the journal up to there. */
  seq: number
  memory: string
  batch: string | null
  /** The append whose outcome it does not know, and the names it has gone by since it last knew where it stood. */
  lost: { seq: number; name: string } | null
  names: string[]
  answer: 'committed' | 'conflict' | 'failed' | null
}
type State = {
  rows: Row[]
  wire: Append[]
  writers: Writer[]
  acknowledged: string[]
  /** Appends that were reported to a writer as not committed. */
  denied: string[]
  lost: number
  failed: number
  crashes: number
  removals: number
  /** The first so many rows are in the database no more. */
  removed: number
}

class Violation extends Error {}

function require(condition: boolean, law: string): void {
  if (!condition) throw new Violation(law)
}

const contentOf = (rows: readonly Row[]): string => rows.map(([, what]) => what).join(' ')

/** All states that one step leads to. Throws a Violation when a step breaks a law. */
function nextStates(protocol: Protocol, bounds: Bounds, text: string): State[] {
  const state = JSON.parse(text) as State
  const next: State[] = []
  const step = (change: (copy: State) => void): void => {
    const copy = JSON.parse(text) as State
    change(copy)
    next.push(copy)
  }
  for (const index of state.wire.keys()) step((copy) => land(protocol, copy, index))
  for (const [index, writer] of state.writers.entries()) {
    const act = (change: (own: Writer, copy: State) => void): void => step((copy) => change(copy.writers[index]!, copy))
    if (writer.phase === 'taking' || writer.phase === 'appending') {
      if (writer.answer !== null) act(hear)
      // The connection breaks, before or after it landed, or an answer takes too long. It may still land.
      if (state.lost < bounds.lost) act((own, copy) => giveUp(protocol, own, copy))
      if (writer.answer === null && state.failed < bounds.failed) act((own, copy) => fail(own, copy, index))
    } else if (writer.phase === 'off' || writer.phase === 'looking') {
      if (writer.takeovers < bounds.takeovers) act((own, copy) => look(protocol, own, copy, index))
    } else if (writer.phase === 'asking') {
      act((own, copy) => ask(protocol, own, copy))
    } else if (writer.phase === 'loading') {
      act(read)
    } else if (writer.phase === 'writing' && (writer.batch !== null || writer.batches < bounds.batches)) {
      act((own, copy) => send(own, copy, index))
    }
    // What it knows it has written to the tables, however late, and old rows below that are removed.
    if (state.removals < bounds.removals && writer.seq - 1 > state.removed) {
      act((own, copy) => {
        copy.removals++
        copy.removed = own.seq - 1
      })
    }
    if (writer.phase !== 'off' && writer.phase !== 'deposed' && state.crashes < bounds.crashes) {
      act((own, copy) => crash(own, copy, index))
    }
  }
  return next
}

/** PostgreSQL comes to an append: its key is free or it is not. One that waits for another at its key comes later. */
function land(protocol: Protocol, state: State, index: number): void {
  const [append] = state.wire.splice(index, 1) as [Append]
  const writer = state.writers[append.writer]
  const is_free = state.rows.length === append.seq - 1
  const is_key_free = is_free || append.seq <= state.removed
  const hears = writer?.name === append.name && writer.answer === null && isAwaited(writer, append)
  if ((!is_free && protocol.append === 'compare') || (!is_key_free && protocol.append === 'compare keys')) {
    if (hears) writer.answer = 'conflict'
    return
  }
  const before = state.rows.at(-1)?.[0]
  require(before === append.name ||
    !state.rows.some(([name]) => name === append.name), 'a writer that was deposed committed again')
  require(append.what === TAKEOVER || contentOf(state.rows) === append.memory, 'a batch rests on what was not so')
  require(append.what === TAKEOVER ||
    !state.rows.some(([, what]) => what === append.what), 'a batch was carried out twice')
  require(!state.denied.includes(`${append.seq} ${append.name}`), 'a batch that was said not to have committed did')
  require(append.seq > state.removed, 'a row was written behind others, where one had been removed')
  state.rows.push([append.name, append.what])
  if (hears) writer.answer = 'committed'
}

function isAwaited(writer: Writer, append: Append): boolean {
  return writer.phase === 'appending'
    ? append.what === writer.batch
    : writer.phase === 'taking' && append.what === TAKEOVER
}

/** Reads the last row, and appends a takeover row after it; or finds that another writer has taken over. */
function look(protocol: Protocol, writer: Writer, state: State, index: number): void {
  const [last] = state.rows.at(-1) ?? []
  if (writer.lost !== null && state.rows.length > writer.seq && !writer.names.includes(last!)) {
    writer.phase = 'asking'
    writer.name = ''
    return
  }
  writer.takeovers++
  writer.name = `${index}.${writer.takeovers}`
  writer.names.push(writer.name)
  if (protocol.takeover === 'read only') {
    writer.phase = writer.lost === null ? 'loading' : 'asking'
    return
  }
  writer.phase = 'taking'
  const seq = state.rows.length + 1
  state.wire.push({ seq, name: writer.name, what: TAKEOVER, memory: '', writer: index })
}

function hear(writer: Writer, state: State): void {
  const { answer } = writer
  writer.answer = null
  if (writer.phase === 'taking') {
    if (answer === 'committed') writer.phase = writer.lost === null ? 'loading' : 'asking'
    else writer.phase = 'looking'
  } else if (answer === 'committed') {
    acknowledge(writer, state)
    writer.seq++
    writer.memory = contentOf(state.rows.slice(0, writer.seq))
    writer.phase = 'writing'
  } else if (answer === 'failed') {
    writer.phase = 'writing'
  } else {
    depose(writer)
  }
}

function acknowledge(writer: Writer, state: State): void {
  require(state.rows.some(([, what]) => what === writer.batch), 'a batch was acknowledged that is not there')
  state.acknowledged.push(writer.batch!)
  writer.batch = null
}

function depose(writer: Writer): void {
  writer.phase = 'deposed'
  writer.batch = null
  writer.lost = null
}

function giveUp(protocol: Protocol, writer: Writer, state: State): void {
  state.lost++
  writer.answer = null
  if (writer.phase === 'appending') {
    writer.lost = { seq: writer.seq + 1, name: writer.name }
    writer.names = [writer.name]
    if (protocol.ask === 'at once') ask(protocol, writer, state)
  }
  writer.phase = 'looking'
}

/** The database refuses for sure: the append is gone, and its seq is free. */
function fail(writer: Writer, state: State, index: number): void {
  const place = state.wire.findIndex((append) => append.writer === index && append.name === writer.name)
  if (place === -1) return
  state.wire.splice(place, 1)
  state.failed++
  writer.answer = 'failed'
}

function ask(protocol: Protocol, writer: Writer, state: State): void {
  if (writer.lost !== null) {
    const { seq, name } = writer.lost
    if (seq > state.removed && state.rows[seq - 1]?.[0] === name) acknowledge(writer, state)
    else state.denied.push(`${seq} ${name}`)
    if (protocol.ask === 'at once') writer.lost = null
  }
  if (writer.phase !== 'asking') return
  if (writer.name === '') depose(writer)
  else writer.phase = 'loading'
}

function read(writer: Writer, state: State): void {
  const own = state.rows.findIndex(([name]) => name === writer.name)
  // Where another has taken over since and its own row is gone, the tables are ahead of it: it reads what it may not extend.
  const rows = own === -1 ? state.rows : state.rows.slice(0, Math.max(own, state.removed) + 1)
  // What was acknowledged before the takeover is in what is read; this writer need not know later acknowledgements.
  const content = contentOf(rows)
  const missing = state.acknowledged.filter((batch) => !content.includes(batch))
  require(missing.every(
    (batch) => state.rows.findIndex(([, what]) => what === batch) >= rows.length,
  ), 'what was acknowledged is missing')
  writer.lost = null
  writer.names = [writer.name]
  writer.seq = own === -1 ? rows.length : own + 1
  writer.memory = content
  writer.phase = 'writing'
}

function send(writer: Writer, state: State, index: number): void {
  if (writer.batch === null) {
    writer.batches++
    writer.batch = `batch-${index}-${writer.batches}`
  }
  writer.phase = 'appending'
  const { name, memory, batch, seq } = writer
  state.wire.push({ seq: seq + 1, name, what: batch, memory, writer: index })
}

/** The process is gone, its appends are not. A new one may start in its place. */
function crash(writer: Writer, state: State, index: number): void {
  state.crashes++
  const { takeovers, batches } = writer
  state.writers[index] = { ...newWriter(), takeovers, batches }
}

function newWriter(): Writer {
  return {
    phase: 'off',
    name: '',
    takeovers: 0,
    batches: 0,
    seq: 0,
    memory: '',
    batch: null,
    lost: null,
    names: [],
    answer: null,
  }
}

function assertLaws(state: State): void {
  const seen = new Set<string>()
  for (const [index, [name, what]] of state.rows.entries()) {
    if (what === TAKEOVER) require(!seen.has(name), 'a name took over twice')
    else require(state.rows[index - 1]?.[0] === name, 'a batch does not follow on its own writer’s row')
    seen.add(name)
  }
  const content = contentOf(state.rows)
  for (const batch of state.acknowledged) require(content.includes(batch), 'what was acknowledged is gone')
  require(new Set(state.acknowledged).size === state.acknowledged.length, 'a batch was acknowledged twice')
}

type Explored = { states: number; acknowledged: number; deposed: number; recovered: number }

/** Visits every state once. Returns counts of what happened, so that a model in which nothing happens is noticed. */
function explore(protocol: Protocol, bounds: Bounds): Explored {
  const start: State = {
    rows: [],
    wire: [],
    writers: Array.from({ length: bounds.writers }, newWriter),
    acknowledged: [],
    denied: [],
    lost: 0,
    failed: 0,
    crashes: 0,
    removals: 0,
    removed: 0,
  }
  const known = new Set([JSON.stringify(start)])
  let edge = [JSON.stringify(start)]
  const met: Explored = { states: 1, acknowledged: 0, deposed: 0, recovered: 0 }
  while (edge.length > 0) {
    const found: string[] = []
    for (const state of edge) {
      for (const next of nextStates(protocol, bounds, state)) {
        next.wire.sort((a, b) => (a.name + a.seq < b.name + b.seq ? -1 : 1))
        const key = JSON.stringify(next)
        if (known.has(key)) continue
        known.add(key)
        if (protocol === OURS) assertLaws(next)
        met.acknowledged = Math.max(met.acknowledged, next.acknowledged.length)
        met.deposed = Math.max(met.deposed, next.writers.filter((writer) => writer.phase === 'deposed').length)
        if (next.denied.length > 0 && next.acknowledged.length > 0) met.recovered++
        found.push(key)
      }
    }
    met.states = known.size
    assert.ok(known.size < STATES_MAX, 'the bounds are too wide for an exhaustive look')
    edge = found
  }
  return met
}

const BOUNDS: readonly Bounds[] = [
  { writers: 2, batches: 2, takeovers: 2, lost: 2, failed: 0, crashes: 0, removals: 0 },
  { writers: 2, batches: 2, takeovers: 2, lost: 1, failed: 1, crashes: 0, removals: 0 },
  { writers: 2, batches: 1, takeovers: 2, lost: 1, failed: 0, crashes: 1, removals: 0 },
  { writers: 2, batches: 1, takeovers: 3, lost: 2, failed: 0, crashes: 0, removals: 0 },
  { writers: 3, batches: 1, takeovers: 2, lost: 1, failed: 0, crashes: 0, removals: 0 },
  { writers: 2, batches: 2, takeovers: 2, lost: 1, failed: 0, crashes: 0, removals: 2 },
  { writers: 2, batches: 1, takeovers: 2, lost: 2, failed: 0, crashes: 0, removals: 1 },
]

for (const bounds of BOUNDS) {
  test(`no interleaving breaks the fence: ${JSON.stringify(bounds)}`, (t: TestContext) => {
    const met = explore(OURS, bounds)
    t.diagnostic(`${met.states} states; at most ${met.acknowledged} batches acknowledged, ${met.deposed} deposed`)
    assert.ok(met.acknowledged >= bounds.writers && met.deposed >= 1 && met.recovered >= 1)
  })
}

const MISTAKES: readonly [string, Partial<Protocol>, RegExp][] = [
  ['a fence that does not fence', { append: 'wherever' }, /deposed committed again|rests on what was not so/],
  ['a reload that misses a commit in flight', { takeover: 'read only' }, /said not to have committed did|missing/],
  ['an append that compares its key alone', { append: 'compare keys' }, /deposed committed again|behind others/],
  ['a fate that is asked before the takeover', { ask: 'at once' }, /said not to have committed did|twice/],
]

for (const [mistake, protocol, law] of MISTAKES) {
  test(`the model finds ${mistake}`, () => {
    const bounds = { writers: 2, batches: 2, takeovers: 2, lost: 1, failed: 0, crashes: 0, removals: 1 }
    assert.throws(
      () => explore({ ...OURS, ...protocol }, bounds),
      (error) => error instanceof Violation && law.test(error.message),
    )
  })
}
