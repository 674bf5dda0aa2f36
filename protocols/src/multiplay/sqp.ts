// SQP: a request for a challenge, then one for the server's information. Numbers are big-endian.
import { type QueryLanguage, readReply, type ServerQuery } from './query.ts'

const CHALLENGE = 0
const QUERY = 1
const VERSION = 1
/** The chunk with the number of players. */
const SERVER_INFO = 1
const CHALLENGE_REQUEST = Buffer.from([CHALLENGE, 0, 0, 0, 0])

export const sqp: QueryLanguage = {
  first: CHALLENGE_REQUEST,
  next(reply) {
    const challenge = decodeChallenge(reply)
    return challenge === null ? decodeInfo(reply) : encodeQuery(challenge)
  },
}

function encodeQuery(challenge: number): Buffer {
  const request = Buffer.alloc(8)
  request.writeUInt8(QUERY, 0)
  request.writeUInt32BE(challenge, 1)
  request.writeUInt16BE(VERSION, 5)
  request.writeUInt8(SERVER_INFO, 7)
  return request
}

function decodeChallenge(reply: Buffer): number | null {
  return readReply(reply, (reader) => (reader.u8() === CHALLENGE ? reader.u32be() : null))
}

/** A reply of several packets is not read: the information of a server fits into one. */
function decodeInfo(reply: Buffer): ServerQuery | null {
  return readReply(reply, (reader) => {
    const is_query = reader.u8() === QUERY
    reader.u32be()
    const version = reader.u16be()
    const packet = reader.u8()
    const last = reader.u8()
    if (!is_query || version !== VERSION || packet !== 0 || last !== 0) return null
    reader.u16be()
    reader.u32be()
    const players = reader.u16be()
    const max_players = reader.u16be()
    const name = reader.countedText()
    const game = reader.countedText()
    reader.countedText()
    return { players, max_players, name, game, map: reader.countedText() }
  })
}
