// The protocol of parked requests between the edge and a role. A parked request waits at the role without a connection.
//
// The edge sends its id in PARK_HEADER with every request to a role. A role that has no channel of this edge offers one in
// PARKED_HEADER of its response. The edge then opens the channel: a connection that is upgraded with CHANNEL_PROTOCOL.
// While there is a channel, the role may park a request: it sends an empty response whose PARKED_HEADER is the number of
// the request. The channel carries lines, each a word and the number of a request:
//
// - `parked N`, from the edge: it has received the empty response.
// - `gone N`, from the edge: the client has disconnected.
// - `done N`, from the role: the response is ready. The edge fetches it with a request that has CLAIM_HEADER.
// - `lost N`, from the role: there will be no response.
//
// A role accepts these headers only with the edge's proof (tokens/edge-proof.ts); the edge drops them from clients.

/** The value of the Upgrade header. */
export const CHANNEL_PROTOCOL = 'muster-parking'
export const PARKING_OFFER = 'offered'

/** Bytes of a line: a word, a number, and the line's end. */
const LINE_BYTES_MAX = 64
const LINE = /^([a-z]{1,16}) (\d{1,16})$/

type ParkingWord = 'parked' | 'gone' | 'done' | 'lost'

export function parkingLine(word: ParkingWord, number: number): string {
  return `${word} ${number}\n`
}

/** Returns a reader of a channel's bytes, which calls `onLine` for each line. It returns false for malformed bytes. */
export function createLineReader(onLine: (word: string, number: number) => void): (bytes: Buffer) => boolean {
  let partial = ''
  return (bytes) => {
    const lines = (partial + bytes.toString('latin1')).split('\n')
    partial = lines.pop() ?? ''
    for (const line of lines) {
      const match = LINE.exec(line)
      if (match === null) return false
      onLine(match[1]!, Number(match[2]))
    }
    return partial.length <= LINE_BYTES_MAX
  }
}
