// The commands of one journal row: their changes by namespace, the rows that these affect, and how to undo them.
import type { Change } from '../../journal/changes.ts'
import type { Undo } from '../book/commands.ts'
import { apply } from '../book/evolve.ts'
import type { Book } from '../book/state.ts'
import { type AffectedRows, addAffected, noAffectedRows } from '../projection/affected-rows.ts'
import type { Pending } from './pending.ts'
import { type LobbyUse, RoomChanges } from './room-claims.ts'

export class Batch {
  readonly pendings: Pending[] = []
  /** What its lobbies use, or do not use any more. */
  readonly room = new RoomChanges()
  readonly #changes = new Map<string, Change[]>()
  readonly #affected = new Map<string, AffectedRows>()
  readonly #undos: Undo[] = []

  /** Without changes there is nothing to append. */
  get has_changes(): boolean {
    return this.#changes.size > 0
  }

  get is_empty(): boolean {
    return this.pendings.length === 0 && !this.has_changes
  }

  /** By namespace. */
  get affected(): ReadonlyMap<string, AffectedRows> {
    return this.#affected
  }

  get undo_count(): number {
    return this.#undos.length
  }

  changeCount(namespace_id: string): number {
    return this.#changes.get(namespace_id)?.length ?? 0
  }

  /** The changes as the journal keeps them. */
  entries(): { namespace_id: string; changes: readonly Change[] }[] {
    return [...this.#changes].map(([namespace_id, changes]) => ({ namespace_id, changes }))
  }

  /** Makes the change true in the book. */
  apply(book: Book, namespace_id: string, change: Change): void {
    let affected = this.#affected.get(namespace_id)
    if (affected === undefined) {
      affected = noAffectedRows()
      this.#affected.set(namespace_id, affected)
    }
    addAffected(book, change, affected)
    this.#undos.push(apply(book, change))
    const changes = this.#changes.get(namespace_id)
    if (changes === undefined) this.#changes.set(namespace_id, [change])
    else changes.push(change)
  }

  /** The change that was applied last begins (1) or ends (-1) this use. */
  addRoom(use: LobbyUse, sign: 1 | -1): void {
    this.room.add(use, sign)
    this.#undos.push(() => this.room.add(use, sign === 1 ? -1 : 1))
  }

  /** `undo` belongs to the change that was applied last. */
  onUndo(undo: Undo): void {
    this.#undos.push(undo)
  }

  /** Undoes everything after these counts, which were read before a command. */
  undoCommand(namespace_id: string, undo_count: number, change_count: number): void {
    this.#undoTo(undo_count)
    const changes = this.#changes.get(namespace_id)
    if (changes !== undefined) changes.length = change_count
    if (changes?.length === 0) this.#changes.delete(namespace_id)
  }

  /** Undoes all commands. The batch is of no use afterwards. */
  undoAll(): void {
    this.#undoTo(0)
  }

  #undoTo(undo_count: number): void {
    while (this.#undos.length > undo_count) this.#undos.pop()!()
  }
}
