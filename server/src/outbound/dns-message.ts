// DNS messages in their wire form (RFC 1035, 4), as far as an update of a TXT record needs them: a question or a zone, and
// records whose data is opaque. Everything that is read is checked against the end of the message.
const HEADER_BYTES = 12
/** Bytes of a label (RFC 1035). */
const LABEL_BYTES_MAX = 63
/** Bytes of a name (RFC 1035). */
const NAME_BYTES_MAX = 255
/** Bytes of one string of a TXT record (RFC 1035). */
const TEXT_BYTES_MAX = 255
/** Pointers of one compressed name. */
const POINTERS_MAX = 32
/** Records of one message. */
const RECORDS_MAX = 512

export const DNS_TYPE = { SOA: 6, TXT: 16, TSIG: 250 } as const
export const DNS_CLASS = { IN: 1, NONE: 254, ANY: 255 } as const
export const DNS_OPCODE = { QUERY: 0, UPDATE: 5 } as const

export type DnsRecord = { name: string; type: number; class: number; ttl: number; data: Buffer }
/** `start`: where the record begins in the message. */
export type ReadRecord = DnsRecord & { start: number }

export type DnsMessage = {
  id: number
  is_response: boolean
  is_truncated: boolean
  response_code: number
  answers: ReadRecord[]
  authorities: ReadRecord[]
  additionals: ReadRecord[]
}

/** One question (in an update: the zone), and the records of the authority section (in an update: what changes). */
export function encodeMessage(message: {
  id: number
  opcode: number
  question: { name: string; type: number }
  authorities?: readonly DnsRecord[]
}): Buffer {
  const { id, opcode, question, authorities = [] } = message
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(opcode << 11, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(authorities.length, 8)
  return Buffer.concat([
    header,
    encodeName(question.name),
    uint16(question.type),
    uint16(DNS_CLASS.IN),
    ...authorities.map(encodeRecord),
  ])
}

/** Throws an Error for a name that has no wire form. */
export function encodeName(name: string): Buffer {
  const labels = name === '' ? [] : name.split('.')
  const parts = labels.map((label) => {
    const bytes = Buffer.from(label, 'latin1')
    if (bytes.length === 0 || bytes.length > LABEL_BYTES_MAX) throw new Error(`${name} is not a name of the DNS.`)
    return Buffer.concat([Buffer.of(bytes.length), bytes])
  })
  const encoded = Buffer.concat([...parts, Buffer.of(0)])
  if (encoded.length > NAME_BYTES_MAX) throw new Error(`${name} is too long for the DNS.`)
  return encoded
}

/** The data of a TXT record of one piece. */
export function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text, 'ascii')
  if (bytes.length > TEXT_BYTES_MAX) throw new Error('The text is too long for one piece of a TXT record.')
  return Buffer.concat([Buffer.of(bytes.length), bytes])
}

export function encodeRecord({ name, type, class: of_class, ttl, data }: DnsRecord): Buffer {
  return Buffer.concat([
    encodeName(name),
    uint16(type),
    uint16(of_class),
    uint16(ttl >>> 16),
    uint16(ttl & 0xffff),
    uint16(data.length),
    data,
  ])
}

export function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

/** Throws an Error when the bytes are not one whole message. */
export function decodeMessage(bytes: Buffer): DnsMessage {
  if (bytes.length < HEADER_BYTES) throw new Error('A DNS message is cut off.')
  const flags = bytes.readUInt16BE(2)
  const counts = [4, 6, 8, 10].map((offset) => bytes.readUInt16BE(offset)) as [number, number, number, number]
  if (counts.reduce((sum, count) => sum + count) > RECORDS_MAX) throw new Error('A DNS message has too many records.')
  let offset = HEADER_BYTES
  for (let question = 0; question < counts[0]; question++) offset = readName(bytes, offset).end + 4
  const readSection = (count: number): ReadRecord[] =>
    Array.from({ length: count }, () => {
      const { record, end } = readRecord(bytes, offset)
      offset = end
      return record
    })
  return {
    id: bytes.readUInt16BE(0),
    is_response: (flags & 0x8000) !== 0,
    is_truncated: (flags & 0x0200) !== 0,
    response_code: flags & 0x000f,
    answers: readSection(counts[1]),
    authorities: readSection(counts[2]),
    additionals: readSection(counts[3]),
  }
}

function readRecord(bytes: Buffer, start: number): { record: ReadRecord; end: number } {
  const { name, end: fixed } = readName(bytes, start)
  const data_start = fixed + 10
  if (data_start > bytes.length) throw new Error('A DNS message is cut off.')
  const end = data_start + bytes.readUInt16BE(fixed + 8)
  if (end > bytes.length) throw new Error('A DNS message is cut off.')
  const record = {
    name,
    type: bytes.readUInt16BE(fixed),
    class: bytes.readUInt16BE(fixed + 2),
    ttl: bytes.readUInt32BE(fixed + 4),
    data: bytes.subarray(data_start, end),
    start,
  }
  return { record, end }
}

/** In lower case, without the dot at the end. `end`: where the next field begins. */
export function readName(bytes: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = []
  let offset = start
  let end: number | null = null
  let pointers = 0
  for (;;) {
    const length = bytes[offset]
    if (length === undefined) throw new Error('A DNS message is cut off.')
    if (length >= 0xc0) {
      if (offset + 2 > bytes.length || ++pointers > POINTERS_MAX) throw new Error('A DNS message has a broken name.')
      end ??= offset + 2
      offset = bytes.readUInt16BE(offset) & 0x3fff
      continue
    }
    if (length > LABEL_BYTES_MAX || offset + 1 + length > bytes.length)
      throw new Error('A DNS message has a broken name.')
    offset += 1 + length
    if (length === 0) return { name: labels.join('.').toLowerCase(), end: end ?? offset }
    labels.push(bytes.toString('latin1', offset - length, offset))
    if (labels.length * 2 > NAME_BYTES_MAX) throw new Error('A DNS message has a broken name.')
  }
}
