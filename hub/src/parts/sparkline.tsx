// A line without axes, for one look. The text beside it, or its label, has the numbers.

const WIDTH = 120
const HEIGHT = 28

export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  const top = Math.max(1, ...values)
  const step = WIDTH / Math.max(1, values.length - 1)
  const points = values.map(
    (value, at) => `${(at * step).toFixed(1)},${(HEIGHT - 2 - (value / top) * (HEIGHT - 4)).toFixed(1)}`,
  )
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      className="h-7 w-30"
      preserveAspectRatio="none"
    >
      <title>{label}</title>
      {values.length < 2 ? null : (
        <>
          <polygon points={`0,${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`} className="fill-mark" />
          <polyline
            points={points.join(' ')}
            className="fill-none stroke-accent"
            strokeWidth="1.5"
            vectorEffect="non-scaling-stroke"
          />
        </>
      )}
    </svg>
  )
}
