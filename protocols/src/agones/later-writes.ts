// What an Agones game server writes to the platform behind its calls: the lobby's state; its tags; that find leaves it out
// while a counter is full. An allocated server is kept while it is empty.
import { isDeepStrictEqual } from 'node:util'
import { LobbyError, type ProtocolLobby } from '../lobby.ts'
import { LatestWrite } from './latest-write.ts'
import { type Entries, tagsOf } from './metadata.ts'

/** The longest time for which the platform keeps a lobby. */
const KEEP_MS = 24 * 3600 * 1000
const RENEW_MS = 12 * 3600 * 1000
const TAG_REFUSALS: ReadonlySet<string> = new Set([
  'MATCHMAKER_TAGS_DISABLED',
  'MATCHMAKER_TOO_MANY_TAGS',
  'MATCHMAKER_TAG_NAME_TOO_LONG',
  'MATCHMAKER_TAG_TOO_LONG',
])

export class LaterWrites {
  readonly #lobby: ProtocolLobby
  readonly #state: LatestWrite<unknown>
  readonly #tags: LatestWrite<Entries>
  readonly #room: LatestWrite<void>
  readonly #keep: LatestWrite<number>
  #saved_tags: Entries
  /** The game mode has tags, and took the last ones. */
  #has_tags = true
  /** When the time is renewed; null: the lobby is not kept. */
  #renew_ts: number | null = null

  /** `arrangeRoom`: closes or opens the lobby. `onDue`: called when `due_ts` has changed. */
  constructor(lobby: ProtocolLobby, { arrangeRoom, onDue }: { arrangeRoom: () => Promise<void>; onDue: () => void }) {
    this.#lobby = lobby
    this.#saved_tags = lobby.facts.tags
    this.#state = new LatestWrite(lobby, {
      what: 'labels, annotations, counters and lists',
      write: (state) => lobby.setState(state),
      onDue,
    })
    this.#tags = new LatestWrite(lobby, { what: 'labels as tags', write: (tags) => this.#writeTags(tags), onDue })
    this.#room = new LatestWrite(lobby, { what: 'whether there is room', write: arrangeRoom, onDue })
    this.#keep = new LatestWrite(lobby, {
      what: 'that the lobby is kept',
      write: (keep_ms) => lobby.keep(keep_ms),
      onDue,
    })
  }

  /** When `run` should be called; null: nothing is due. */
  get due_ts(): number | null {
    const due = [...this.#writes().map(({ due_ts }) => due_ts), this.#renew_ts].filter((ts) => ts !== null)
    return due.length === 0 ? null : Math.min(...due)
  }

  saveState(state: unknown): void {
    this.#state.set(state)
  }

  /** The server's labels beside the tags of the lobby's creation. */
  saveLabels(labels: Entries): void {
    const tags = { ...this.#lobby.facts.tags, ...tagsOf(labels) }
    if (isDeepStrictEqual(tags, this.#saved_tags)) return
    this.#saved_tags = tags
    this.#tags.set(tags)
  }

  saveRoom(): void {
    this.#room.set()
  }

  /** Ends the time for which it is kept, also that of its allocation. */
  release(): void {
    this.#renew_ts = null
    this.#keep.set(0)
  }

  /** Whether the lobby is kept. */
  keep(is_kept: boolean): void {
    if (is_kept === (this.#renew_ts !== null)) return
    this.#renew_ts = is_kept ? this.#lobby.now() + RENEW_MS : null
    this.#keep.set(is_kept ? KEEP_MS : 0)
  }

  run(): void {
    const now = this.#lobby.now()
    if (this.#renew_ts !== null && now >= this.#renew_ts) {
      this.#renew_ts = now + RENEW_MS
      this.#keep.set(KEEP_MS)
    }
    for (const write of this.#writes()) write.write()
  }

  /** A game mode without tags has none, and labels that are too many or too long are none from then on. */
  async #writeTags(tags: Entries): Promise<void> {
    if (!this.#has_tags) return
    await this.#lobby.setTags(tags).catch((error: unknown) => {
      if (!(error instanceof LobbyError) || !TAG_REFUSALS.has(error.code)) throw error
      this.#has_tags = false
      if (error.code !== 'MATCHMAKER_TAGS_DISABLED')
        this.#lobby.log(`agones: labels are no longer tags: ${error.message}`)
    })
  }

  #writes(): Pick<LatestWrite<unknown>, 'due_ts' | 'write'>[] {
    return [this.#state, this.#tags, this.#room, this.#keep]
  }
}
