// The picture inside a room: each of its files and folders is a box, and the imports between them are its arrows.
import type { SourceFile } from './read.ts'

export type Boxes = {
  boxes: string[]
  /** `from -> to`, each once. */
  arrows: Map<string, { file: string; line: number }>
}

/** `sources` are without tests. */
export function readBoxes(room: string, sources: readonly SourceFile[]): Boxes {
  const boxes = new Set<string>()
  const arrows: Boxes['arrows'] = new Map()
  for (const { path, imports } of sources) {
    const from = boxOf(room, path)
    if (from === null) continue
    boxes.add(from)
    for (const { file, line } of imports) {
      const to = file === null ? null : boxOf(room, file)
      if (to === null || to === from || arrows.has(`${from} -> ${to}`)) continue
      arrows.set(`${from} -> ${to}`, { file: path, line })
    }
  }
  return { boxes: [...boxes].sort(), arrows }
}

/** Null for a file outside the room. */
function boxOf(room: string, path: string): string | null {
  if (!path.startsWith(`${room}/`)) return null
  return path
    .slice(room.length + 1)
    .split('/')[0]!
    .replace(/\.(?:tsx?|css)$/, '')
}

/** The groups of boxes that lead back to themselves. */
export function circlesOf({ boxes, arrows }: { boxes: string[]; arrows: ReadonlyMap<string, unknown> }): string[][] {
  const next = Map.groupBy(
    [...arrows.keys()].map((arrow) => arrow.split(' -> ')),
    ([from]) => from!,
  )
  const reached = new Map(boxes.map((box) => [box, reachableFrom(box, next)]))
  const circles = new Map<string, string[]>()
  for (const box of boxes) {
    const circle = boxes.filter((other) => reached.get(box)!.has(other) && reached.get(other)!.has(box))
    if (circle.length > 1) circles.set(circle.join(), circle)
  }
  return [...circles.values()]
}

function reachableFrom(box: string, next: ReadonlyMap<string, readonly string[][]>): Set<string> {
  const reached = new Set<string>()
  const open = [box]
  for (let from = open.pop(); from !== undefined; from = open.pop()) {
    for (const [, to] of next.get(from) ?? []) {
      if (reached.has(to!)) continue
      reached.add(to!)
      open.push(to!)
    }
  }
  return reached
}

/** Arrows that the picture of a room does not have, or has and no import needs, and circles in the picture. */
export function faultsInside(
  room: string,
  picture: Readonly<Record<string, readonly string[]>>,
  sources: readonly SourceFile[],
): string[] {
  const { arrows } = readBoxes(room, sources)
  const drawn = new Map<string, null>(
    Object.entries(picture).flatMap(([from, may]) => may.map((to) => [`${from} -> ${to}`, null])),
  )
  const not_drawn = [...arrows].filter(([arrow]) => !drawn.has(arrow))
  const not_needed = [...drawn.keys()].filter((arrow) => !arrows.has(arrow))
  return [
    ...not_drawn.map(([arrow, { file, line }]) => `${file}:${line} ${arrow} is no arrow of ${room}.`),
    ...not_needed.map((arrow) => `rules.ts: no import of ${room} needs ${arrow}.`),
    ...circlesOf({ boxes: Object.keys(picture), arrows: drawn }).map(
      (circle) => `rules.ts: ${circle.join(', ')} of ${room} are a circle.`,
    ),
  ]
}
