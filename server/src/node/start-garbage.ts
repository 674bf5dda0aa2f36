// Frees the memory that a start used. V8 grows the space for young objects while modules load, and an idle process would
// keep it: 15 to 30 MB. The collection takes about 30 ms, so it is made before the first request.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { type: 'major'; flavor: 'last-resort' }) => void

/** Collects all garbage and returns the memory to the system. It blocks this process, so it is for the end of a start. */
export function collectStartGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  // This kind also shrinks the spaces, which an ordinary collection does not.
  collect({ type: 'major', flavor: 'last-resort' })
}
