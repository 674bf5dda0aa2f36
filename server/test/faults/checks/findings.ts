// The findings of a check: a bounded list of sentences.
const FINDINGS_MAX = 200

export class Findings {
  readonly #texts: string[] = []
  #count = 0

  add(text: string): void {
    this.#count++
    if (this.#texts.length < FINDINGS_MAX) this.#texts.push(text)
  }

  /** Adds the text unless `holds`. */
  require(holds: boolean, text: string): void {
    if (!holds) this.add(text)
  }

  get count(): number {
    return this.#count
  }

  get texts(): readonly string[] {
    return this.#texts
  }
}
