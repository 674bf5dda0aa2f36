// An answer that is JSON text already: what most requests get almost the same is serialised once, not once a request.
// The mark is a symbol, which no JSON that came from outside can carry: a lobby's state is answered as it was set.
const TEXT = Symbol('prepared text')

/** The text of a T. */
export type Prepared<T> = { readonly [TEXT]: string; of?: T }

export function prepare<T>(text: string): Prepared<T> {
  return { [TEXT]: text }
}

/** Null: the answer is none, but a value yet to be serialised. */
export function preparedText(answer: unknown): string | null {
  if (typeof answer !== 'object' || answer === null || !(TEXT in answer)) return null
  return (answer as Prepared<unknown>)[TEXT]
}
