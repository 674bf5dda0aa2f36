// A book and its plain reference, driven as a shard drives its book: commands gather, and a batch commits or fails. A
// batch that fails is undone. After every step both books hold the same, and the laws hold.
import assert from 'node:assert'
import type { Change } from '../../../src/journal/changes.ts'
import type { Undo } from '../../../src/matchmaker/book/commands.ts'
import * as decide from '../../../src/matchmaker/book/decide.ts'
import { apply, dropHolds, forget, setIdleRules } from '../../../src/matchmaker/book/evolve.ts'
import { NONE_REPORTED_MS } from '../../../src/matchmaker/book/idle.ts'
import type { Lobby } from '../../../src/matchmaker/book/lobby.ts'
import { Book } from '../../../src/matchmaker/book/state.ts'
import { expireHolds } from '../plain-book/holds.ts'
import { emptyBook, type PlainBook, plannedIn } from '../plain-book/state.ts'
import * as plain from '../plain-book/time.ts'
import { idOf, START_MS } from '../plain-requests.ts'
import { COMMANDS, type CommandKind } from './commands.ts'
import { assertSame } from './compare-books.ts'
import { type Comparison, drawInput, type Ids } from './draw.ts'
import { fingerprint } from './fingerprint.ts'
import { assertStateLaws, SeatHistory } from './laws.ts'
import { assertRebuilds, rulesOf, type StoredRows } from './rebuild.ts'
import { IDENTITIES, IDLE, KINDS, pick, type Step, TIMES_MS } from './steps.ts'
import { rowsOf } from './stored-rows.ts'

type Committed = { reference: PlainBook; print: string; has_holds: boolean }

export class BookPair {
  /** Planned lobbies that take room. */
  readonly #rooms = new Set<string>()
  readonly #book = new Book({
    onPlanned: (lobby, sign) => this.#countRoom(lobby, sign),
    reported_ms: NONE_REPORTED_MS,
  })
  #reference = emptyBook()
  #now_ms = START_MS
  #last_id = 0
  readonly #committed: Change[] = []
  #uncommitted: Change[] = []
  #undos: Undo[] = []
  #at_commit: Committed = {
    reference: structuredClone(this.#reference),
    print: fingerprint(this.#book, START_MS),
    has_holds: false,
  }
  #rows: StoredRows | null = null
  /** The edges have reported something since the last commit. */
  #has_new_reports = false
  readonly #history = new SeatHistory()

  step([kind_number, actor, choice, time]: Step): void {
    const kind = pick(KINDS, kind_number)
    this.#now_ms += pick(TIMES_MS, time)
    if (kind === 'fail') this.#fail()
    else {
      this.#expire()
      if (kind === 'commit') this.#commit(choice)
      else if (kind !== 'time') this.#command(kind, actor, choice)
    }
    assertSame(this.#book, this.#reference)
    assert.deepEqual(
      [...this.#rooms].sort(),
      plannedIn(this.#reference)
        .map((plan) => plan.id)
        .sort(),
    )
    assertStateLaws(this.#book)
    this.#history.check(this.#committed)
  }

  /** Asserts that the book can be made anew from what is stored. */
  rebuild(): void {
    for (const { player } of this.#reference.holds) dropHolds(this.#book, { player_id: player })
    assert.equal(this.#rooms.size, 0, 'dropped holds take no room')
    const changes = [...this.#committed, ...this.#uncommitted]
    assertRebuilds(this.#book, this.#reference, changes, this.#rows, this.#now_ms)
  }

  #countRoom({ lobby_id }: Lobby, sign: 1 | -1): void {
    assert.equal(this.#rooms.has(lobby_id), sign === -1, 'room is taken and freed in turn')
    if (sign === 1) this.#rooms.add(lobby_id)
    else this.#rooms.delete(lobby_id)
  }

  #fail(): void {
    for (const undo of this.#undos.reverse()) undo()
    this.#undos = []
    this.#uncommitted = []
    this.#reference = plain.undone(this.#at_commit.reference, this.#reference)
    // Holds and connections are not undone. Their effects are compared after the step.
    if (!this.#at_commit.has_holds && this.#reference.holds.length === 0 && !this.#has_new_reports) {
      assert.equal(fingerprint(this.#book, START_MS), this.#at_commit.print, 'an undo restores exactly what was there')
    }
  }

  #expire(): void {
    const now_ms = this.#now_ms
    expireHolds(this.#reference, now_ms)
    for (let change = decide.expire(this.#book, now_ms); change !== null; change = decide.expire(this.#book, now_ms)) {
      assert.ok(plain.takeExpiry(this.#reference, change, now_ms), `not yet due: ${JSON.stringify(change)}`)
      this.#apply(change)
    }
  }

  #commit(choice: number): void {
    this.#committed.push(...this.#uncommitted)
    this.#undos = []
    this.#uncommitted = []
    forget(this.#book, this.#now_ms)
    plain.forget(this.#reference, this.#now_ms)
    this.#reference.seated = []
    this.#reference.idle = pick(IDLE, choice >> 4)
    setIdleRules(this.#book, rulesOf(this.#reference.idle))
    const has_holds = this.#reference.holds.length > 0
    const print = fingerprint(this.#book, START_MS)
    this.#at_commit = { reference: structuredClone(this.#reference), print, has_holds }
    this.#has_new_reports = false
    if (this.#rows === null || choice % 3 === 0)
      this.#rows = { text: JSON.stringify(rowsOf(this.#book)), change_count: this.#committed.length }
  }

  #command(kind: CommandKind, actor: number, choice: number): void {
    const books = { book: this.#book, reference: this.#reference, now_ms: this.#now_ms }
    if (kind === 'connections' || kind === 'edge_report') this.#has_new_reports = true
    const comparison = COMMANDS[kind](drawInput(books, this.#freshIds(), actor, choice))
    if (comparison !== null) this.#compare(comparison)
  }

  #compare({ decision, expected }: Comparison): void {
    if ('changes' in decision) for (const change of decision.changes) this.#apply(change)
    assert.deepEqual(
      'refused' in decision ? decision : decision.result,
      expected === null || 'refused' in expected
        ? expected
        : { lobby_id: expected.lobby, player_id: expected.player, is_ready: expected.is_ready },
    )
  }

  #apply(change: Change): void {
    // The journal stores changes as JSON.
    const stored = JSON.parse(JSON.stringify(change)) as Change
    this.#undos.push(apply(this.#book, stored))
    this.#uncommitted.push(stored)
  }

  /** Returns ids in scrambled order: only the tie of one millisecond may depend on the order of ids. */
  #freshIds(): Ids {
    this.#last_id += 6
    const scrambled = (number: number): string => idOf((number * 7_368_787) % 16_777_213)
    const member_ids = IDENTITIES.slice(1).map((_, index) => scrambled(this.#last_id + 2 + index))
    return { lobby_id: scrambled(this.#last_id), player_id: scrambled(this.#last_id + 1), member_ids }
  }
}
