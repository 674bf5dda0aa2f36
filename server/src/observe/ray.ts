// One request in one role, while it goes on. Its time is cut into phases: each begins where the one before it ended, so
// they add up to all of it. On the hot path that is a clock and two pushes a phase; what people read is made of it when
// it is kept (recorder.ts), which few are. A null ray is that of a platform that keeps none.

/** Phases of one ray. Beyond it the last phase continues, and the ray is marked as truncated. */
export const PHASES_MAX = 64
/** Marks of one ray. */
export const MARKS_MAX = 32
/** Characters of the label of a phase or a mark. */
export const LABEL_LENGTH_MAX = 64

export type RayService = 'edge' | 'api' | 'matchmaker' | 'runner'
/** Owner of the request. Null: it has no known owner; administrators see its ray. */
export type RayOwner = { kind: 'namespace' | 'game' | 'user'; id: string } | null

/** Text of the owner, as api and matchmaker send it to the edge. */
export function ownerText(owner: RayOwner): string {
  return owner === null ? 'nobody' : `${owner.kind} ${owner.id}`
}

/** Reads the text of an owner; null when the request has no owner, and for any other text. */
export function readOwner(text: string): RayOwner {
  const [kind, id = ''] = text.split(' ')
  return kind === 'namespace' || kind === 'game' || kind === 'user' ? { kind, id } : null
}

/** A moment. `ray_id`: of another ray that it is about. */
type Mark = { label: string; at: number; ray_id: string | null }

/** Times are readings of performance.now(). */
export type Ray = {
  readonly ray_id: string
  readonly service: RayService
  /** The beginnings of the phases, and what they are called. */
  readonly times: number[]
  readonly labels: string[]
  marks: Mark[] | null
  left_out: number
  /** What was asked for. */
  operation: string
  owner: RayOwner
  /** The player whose seat it gave or changed; of a party, the player of its leader. */
  player_id: string | null
  /** It belongs to an event that is kept in any case, such as the start of a lobby. */
  is_wanted: boolean
}

const NO_EVENT = { player_id: null, is_wanted: false } as const

/** `at`: when it came, if that was before now. */
export function openRay(service: RayService, ray_id: string, at = performance.now(), label = 'http'): Ray {
  const [times, labels] = [[at], [label]]
  return { ray_id, service, times, labels, marks: null, left_out: 0, operation: '', owner: null, ...NO_EVENT }
}

/** What went on has ended, and this begins. */
export function phase(ray: Ray | null, label: string): void {
  if (ray === null) return
  if (ray.times.length < PHASES_MAX) {
    ray.times.push(performance.now())
    ray.labels.push(label)
  } else ray.left_out++
}

export function mark(ray: Ray | null, label: string, ray_id: string | null = null): void {
  if (ray === null) return
  ray.marks ??= []
  if (ray.marks.length < MARKS_MAX) ray.marks.push({ label, at: performance.now(), ray_id })
  else ray.left_out++
}

/** Phases of somebody else's time. */
const OF_OTHERS = new Set(['wait', 'forward'])

export function busyMs({ times, labels }: Ray, end: number): number {
  let busy_ms = 0
  for (const [index, from] of times.entries()) {
    if (!OF_OTHERS.has(labels[index]!)) busy_ms += (times[index + 1] ?? end) - from
  }
  return busy_ms
}
