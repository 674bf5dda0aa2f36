// What a start leaves behind. V8 lets the memory for young objects grow while modules are loaded, and an idle process
// would keep it for good: 15 to 30 MB of each. The collection takes some 30 ms, so it is made before there are requests.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { type: 'major'; flavor: 'last-resort' }) => void

/** Collects all garbage and gives the memory back. Stops this process meanwhile: for the end of a start. */
export function collectStartGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  // It also shrinks what has grown, which an ordinary collection does not.
  collect({ type: 'major', flavor: 'last-resort' })
}
