// A2S: a request for information, which the server may have repeated with a challenge. Numbers are little-endian.
import { type QueryLanguage, readReply, type ServerQuery } from './query.ts'

const HEAD = Buffer.from([0xff, 0xff, 0xff, 0xff])
const INFO_REQUEST = Buffer.concat([HEAD, Buffer.from('TSource Engine Query\0', 'latin1')])
const CHALLENGE = 0x41
const INFO = 0x49
const CHALLENGE_BYTES = 4

export const a2s: QueryLanguage = {
  first: INFO_REQUEST,
  next(reply) {
    if (reply.length < 5 || !reply.subarray(0, 4).equals(HEAD)) return null
    const body = reply.subarray(5)
    if (reply[4] === CHALLENGE && body.length >= CHALLENGE_BYTES) {
      return Buffer.concat([INFO_REQUEST, body.subarray(0, CHALLENGE_BYTES)])
    }
    return reply[4] === INFO ? decodeInfo(body) : null
  },
}

function decodeInfo(body: Buffer): ServerQuery | null {
  return readReply(body, (reader) => {
    reader.u8()
    const name = reader.endedText()
    const map = reader.endedText()
    reader.endedText()
    const game = reader.endedText()
    reader.u16le()
    return { name, map, game, players: reader.u8(), max_players: reader.u8() }
  })
}
