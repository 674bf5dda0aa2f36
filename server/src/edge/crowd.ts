// Who is here: connections and sources of datagrams, altogether and by client, so that one client cannot shut the others
// out, and everybody is refused while there still are descriptors: with none left, nobody could be answered.
import { clientBucket } from '../net/client-ip.ts'
import { CONNECTIONS_PER_SOURCE_SHARE, connectionsMax } from './limits.ts'

export type Crowd = {
  connections_max: number
  /** Answers what is to be called once when it leaves; null: there is no room. */
  enter: (address: string) => (() => void) | null
}

export function createCrowd(connections_max = connectionsMax()): Crowd {
  const per_source_max = Math.ceil(connections_max * CONNECTIONS_PER_SOURCE_SHARE)
  const counts = new Map<string, number>()
  let sum = 0
  return {
    connections_max,
    enter(address) {
      const source = clientBucket(address)
      const count = counts.get(source) ?? 0
      if (sum >= connections_max || count >= per_source_max) return null
      sum++
      counts.set(source, count + 1)
      return () => {
        sum--
        const left = (counts.get(source) ?? 1) - 1
        if (left === 0) counts.delete(source)
        else counts.set(source, left)
      }
    },
  }
}
