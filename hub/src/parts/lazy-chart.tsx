// A chart for pages. It loads uPlot with the first chart, and keeps its place until then.
import { lazy, Suspense } from 'react'
import type { ChartProps } from './chart.tsx'

const LazyChart = lazy(() => import('./chart.tsx'))

export function Chart(props: ChartProps) {
  return (
    <Suspense fallback={<div className="h-[220px]" />}>
      <LazyChart {...props} />
    </Suspense>
  )
}
