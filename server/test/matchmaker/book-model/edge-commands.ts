// Reports of the edges. They are in no journal, and a failed batch does not undo them.
import { setConnections, setReported } from '../../../src/matchmaker/book/evolve.ts'
import { setOpen } from '../plain-book/idle.ts'
import { START_MS } from '../plain-requests.ts'
import type { Command } from './draw.ts'
import { pick } from './steps.ts'

export const EDGE_COMMANDS = {
  connections({ book, reference, lobby, choice, now_ms }) {
    const count = pick([0, 0, 1, 2], choice)
    setConnections(book, lobby, count, now_ms)
    setOpen(reference, lobby, count, now_ms)
    return null
  },

  edge_report({ book, reference, choice, now_ms }) {
    reference.reported = pick([now_ms, now_ms - 1_000], choice)
    setReported(book, START_MS, reference.reported)
    return null
  },
} satisfies Record<string, Command>
