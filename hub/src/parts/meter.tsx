// How much of a limit is used: as a bar and in words.

export type MeterProps = {
  label: string
  value: number
  /** Undefined: without a limit. */
  max: number | undefined
  format: (value: number) => string
}

/** From this share on, the bar warns. */
const NEAR = 0.8

/** The class of a bar's color. `share`: of the limit. */
export function barColor(share: number): string {
  if (share >= 1) return 'bg-bad'
  return share >= NEAR ? 'bg-warn' : 'bg-accent'
}

export function Meter({ label, value, max, format }: MeterProps) {
  if (max === undefined) return <span className="numbers">{format(value)}, without a limit</span>
  const share = max === 0 ? 1 : Math.min(1, value / max)
  return (
    <span className="flex flex-wrap items-center gap-2">
      <span
        role="img"
        aria-label={`${label}: ${Math.round(share * 100)} % used`}
        className="inline-block h-2 w-24 overflow-hidden rounded bg-code"
      >
        <span className={`block h-full ${barColor(share)}`} style={{ width: `${share * 100}%` }} />
      </span>
      <span className="numbers">
        {format(value)} of {format(max)}
      </span>
    </span>
  )
}
