// The requests to end runs. A repeated request may only bring the end forward.

/** `deadline_ms`: the end of the grace, by performance.now. */
export type Ending = { deadline_ms: number }

export class Endings {
  readonly #known = new Map<string, { ending: Ending; done: Promise<void> }>()

  /** Resolves as `end` does, which is called once for all requests of that time and reads the current deadline. */
  request(lobby_id: string, grace_ms: number, end: (ending: Ending) => Promise<void>): Promise<void> {
    const deadline_ms = performance.now() + grace_ms
    const known = this.#known.get(lobby_id)
    if (known !== undefined) {
      known.ending.deadline_ms = Math.min(known.ending.deadline_ms, deadline_ms)
      return known.done
    }
    const ending = { deadline_ms }
    const done = end(ending).finally(() => this.#known.delete(lobby_id))
    this.#known.set(lobby_id, { ending, done })
    return done
  }
}
