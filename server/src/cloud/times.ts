// The one place where a time of the database becomes a time of a record, and one of a query a number.

/** RFC 3339, UTC, milliseconds. */
export function timestamp(date: Date): string {
  return date.toISOString()
}

/** Returns the milliseconds since the epoch of a text in the contract's format `instant`. */
export function instantOf(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Date.parse(text)
}
