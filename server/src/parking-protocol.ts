// How edge and roles speak about parked requests: requests that wait at a role without a connection of their own.
//
// The edge names itself in PARK_HEADER with every request to a role. Where the role knows no channel of this edge, it
// offers one in PARKED_HEADER of its response, and the edge opens it: a connection that is upgraded with CHANNEL_PROTOCOL.
// While there is a channel the role may park a request: it returns an empty response whose PARKED_HEADER is the number of
// the request. The edge confirms with the line `parked N`, and says `gone N` when its client has hung up. When the
// response is there the role says `done N`, and the edge fetches it with a request that has CLAIM_HEADER. `lost N` says
// that there will be none.
// All of this counts only together with the edge's proof (tokens/edge-proof.ts); no client can send these headers.

/** As the value of Upgrade. */
export const CHANNEL_PROTOCOL = 'muster-parking'
/** The id of the edge's process. */
export const PARK_HEADER = 'x-muster-park'
/** A number, or PARKING_OFFER. */
export const PARKED_HEADER = 'x-muster-parked'
export const PARKING_OFFER = 'offered'
/** The number of the request whose response is fetched. */
export const CLAIM_HEADER = 'x-muster-claim'

/** A word and a number, with the end of the line. */
const LINE_BYTES_MAX = 64
const LINE = /^([a-z]{1,16}) (\d{1,16})$/

type ParkingWord = 'parked' | 'gone' | 'done' | 'lost'

export function parkingLine(word: ParkingWord, number: number): string {
  return `${word} ${number}\n`
}

/** Takes a channel's bytes and calls `onLine` for each line of them. Returns false when they are not of this protocol. */
export function createLineReader(onLine: (word: string, number: number) => void): (bytes: Buffer) => boolean {
  let begun = ''
  return (bytes) => {
    const lines = (begun + bytes.toString('latin1')).split('\n')
    begun = lines.pop() ?? ''
    for (const line of lines) {
      const match = LINE.exec(line)
      if (match === null) return false
      onLine(match[1]!, Number(match[2]))
    }
    return begun.length <= LINE_BYTES_MAX
  }
}
