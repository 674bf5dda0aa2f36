// An answer that is JSON text already: what most requests get almost the same is serialised once, not once a request.

/** The text of a T. */
export type Prepared<T> = { prepared: string; of?: T }

export function isPrepared(answer: unknown): answer is Prepared<unknown> {
  return typeof answer === 'object' && answer !== null && 'prepared' in answer && typeof answer.prepared === 'string'
}
