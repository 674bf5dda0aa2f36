// What the platform kept about one request. Each service stores its part within seconds, so a new ray is read again until all
// of it is there.
import { useEffect, useState } from 'react'
import { explainRay, getRayPerfLogs } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'

const REPEAT_MS = 1_000
/** How long a ray is read again after the page opened. */
const STORED_MS_MAX = 15_000
/** The parts of a request that is older than this are stored. */
const WHOLE_AFTER_MS = 6_000

export function useRay(ray_id: string) {
  const [is_waiting, setWaiting] = useState(true)
  const options = is_waiting ? { every_ms: REPEAT_MS } : {}
  const params = { ray_id }
  const timings = useCall(getRayPerfLogs, { params }, options)
  const explanation = useCall(explainRay, { params }, options)
  const ts = timings.data?.perf_lists[0]?.ts
  useEffect(() => {
    if (!is_waiting) return
    const age_ms = ts === undefined ? 0 : Date.now() - Date.parse(ts)
    const wait_ms = ts === undefined ? STORED_MS_MAX : Math.max(0, WHOLE_AFTER_MS - age_ms)
    const timer = setTimeout(() => setWaiting(false), wait_ms)
    return () => clearTimeout(timer)
  }, [ts, is_waiting])
  return { timings, explanation, is_waiting }
}
