// The one place where a time of the database becomes a time of a record.

/** RFC 3339, UTC, milliseconds. */
export function timestamp(date: Date): string {
  return date.toISOString()
}
