// Where something stands in a text that a person wrote.

/** Both count from 1. */
export type TextPosition = { line: number; column: number }

/** As the end of a message: ` (line 3, column 5)`. */
export function positionText(position: TextPosition | null): string {
  return position === null ? '' : ` (line ${position.line}, column ${position.column})`
}
