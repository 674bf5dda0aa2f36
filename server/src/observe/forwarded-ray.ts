// The part of a ray in a process that forwards its request to a role. It is kept where the role keeps its own part, because
// the role knows how the request ended and whose it is. A slow one is kept in any case.
import { busyMs, phase, type Ray, readOwner } from './ray.ts'
import { type Recorder, SLOW_MS } from './recorder.ts'

/** The head of the response has come. `kept`: the owner, where the role keeps its part. */
export function readForwardedHead(ray: Ray | null, kept: string | null): void {
  if (ray === null) return
  phase(ray, 'answer')
  if (kept === null) return
  ray.is_wanted = true
  ray.owner = readOwner(kept)
}

/** The whole response has been passed on. */
export function endForwarded(recorder: Recorder, ray: Ray | null): void {
  if (ray !== null && (ray.is_wanted || busyMs(ray, performance.now()) >= SLOW_MS)) recorder.end(ray, null)
}
