// A number of a rating, with two digits after the point.

const DIGITS = 2

export function Strength({ value }: { value: number }) {
  return <span title={String(value)}>{value.toFixed(DIGITS)}</span>
}
