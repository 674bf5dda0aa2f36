// Where something stands in a text that a person wrote.

/** Both count from 1. */
export type TextPosition = { line: number; column: number }

/** As the end of a message: ` (line 3, column 5)`. */
export function positionText(place: TextPosition | null): string {
  return place === null ? '' : ` (line ${place.line}, column ${place.column})`
}
