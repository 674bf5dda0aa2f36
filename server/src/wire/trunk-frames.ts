// The frames of a trunk: one connection between an edge and a process of a role, which carries many requests at once. Each
// request and its response are a stream, which has a number. `docs/design/edge.md` has the order of the frames.
//
// A frame is the length of its payload (4 bytes), its kind (1), the number of its stream (4), and the payload. Numbers are
// big-endian. Stream 0 is the trunk itself. Text is latin1, as in the heads of HTTP/1.1.

/** Kinds of frames, and who sends them. */
export const FRAMES = {
  /** Edge: a whole request. Its body is small. */
  request: 1,
  /** Role: the head of a response, and the beginning of its body. */
  response: 2,
  /** Role: more of a body. */
  body: 3,
  /** Edge: the client is gone. Role: no response will come, or not the rest of it. */
  reset: 4,
  /** Edge: the role may send so many more bytes of the stream's body. */
  credit: 5,
  /** Role: the request waits, whatever for. */
  waits: 6,
  /** Edge: asks whether the role is still there. */
  ping: 7,
  /** Role: it is. */
  pong: 8,
  /** Role: no further request may be sent. */
  stop: 9,
  /** Edge: no further request will be. */
  stopped: 10,
} as const

/** Bytes of a payload: a head, a small body, and the fields beside them. A longer one breaks the trunk. */
export const FRAME_BYTES_MAX = 128 * 1024
/** Bytes of a body that one frame carries, so that the responses to others need not wait for a long one. */
export const PIECE_BYTES_MAX = 16 * 1024
/** Bytes of a stream's body that a role may send before the edge asks for more: as many wait for a client that reads slowly. */
export const STREAM_CREDIT_BYTES = 32 * 1024

const HEAD_BYTES = 9
const REQUEST_FIELDS_BYTES = 8
const RESPONSE_FIELDS_BYTES = 14
/** Bytes in which frames are written. A batch that is longer gets memory of its own. */
const SLAB_BYTES = 64 * 1024

const [IS_SECURE, HAS_LENGTH, ASKS_SHARD] = [1, 2, 4]
const [IS_LAST, HAS_KEPT] = [1, 2]
/** In place of a length. */
const [LENGTH_UNKNOWN, LENGTH_NONE, NO_SHARD] = [0xffffffff, 0xfffffffe, 0xffffffff]

/** `has_length`: its head has a Content-Length, that of its body. */
export type TrunkRequest = {
  method: string
  path: string
  client_ip: string
  ray_id: string
  /** Header lines, each a name, a colon, one space, a value and CRLF. */
  lines: string
  is_secure: boolean
  has_length: boolean
  /** The response is to name the shard of the caller's namespace. */
  asks_shard: boolean
}

export type TrunkResponse = {
  status: number
  lines: string
  /** Bytes of the body. Null: not known yet. `none`: the response has no body, whatever its Content-Length. */
  body_length: number | null | 'none'
  /** The owner of the ray that the role keeps; null: it keeps none. */
  ray_kept: string | null
  shard: number | null
}

/** Frames that leave in one write. */
export class FrameBatch {
  #slab: Buffer = Buffer.alloc(0)
  #start = 0
  #end = 0

  /** Bytes of the frames. */
  get length(): number {
    return this.#end - this.#start
  }

  /** `body`: a string is latin1. */
  request(stream: number, request: TrunkRequest, body: string | Buffer): void {
    const { method, path, client_ip, ray_id, lines } = request
    const text = `${method}${path}${client_ip}${ray_id}${lines}`
    const length = REQUEST_FIELDS_BYTES + text.length + body.length
    let at = this.#begin(length, FRAMES.request, stream)
    const slab = this.#slab
    const { is_secure, has_length, asks_shard } = request
    slab[at] = (is_secure ? IS_SECURE : 0) | (has_length ? HAS_LENGTH : 0) | (asks_shard ? ASKS_SHARD : 0)
    slab[at + 1] = method.length
    slab[at + 2] = client_ip.length
    slab[at + 3] = ray_id.length
    writeUint16(slab, at + 4, path.length)
    writeUint16(slab, at + 6, lines.length)
    at += REQUEST_FIELDS_BYTES
    slab.write(text, at, 'latin1')
    at += text.length
    if (typeof body === 'string') slab.write(body, at, 'latin1')
    else body.copy(slab, at)
  }

  /** `body`: the beginning of it; a string is UTF-8. `is_last`: all of it. */
  response(stream: number, response: TrunkResponse, body: string | Buffer, is_last: boolean): void {
    const { status, lines, body_length, ray_kept, shard } = response
    const text = ray_kept === null ? lines : `${ray_kept}${lines}`
    const body_bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    let at = this.#begin(RESPONSE_FIELDS_BYTES + text.length + body_bytes, FRAMES.response, stream)
    const slab = this.#slab
    slab[at] = (is_last ? IS_LAST : 0) | (ray_kept === null ? 0 : HAS_KEPT)
    slab[at + 1] = ray_kept === null ? 0 : ray_kept.length
    writeUint16(slab, at + 2, status)
    writeUint16(slab, at + 4, lines.length)
    writeUint32(
      slab,
      at + 6,
      body_length === null ? LENGTH_UNKNOWN : body_length === 'none' ? LENGTH_NONE : body_length,
    )
    writeUint32(slab, at + 10, shard ?? NO_SHARD)
    at += RESPONSE_FIELDS_BYTES
    slab.write(text, at, 'latin1')
    at += text.length
    if (typeof body === 'string') slab.write(body, at, 'utf8')
    else body.copy(slab, at)
  }

  body(stream: number, bytes: Buffer, is_last: boolean): void {
    const at = this.#begin(1 + bytes.length, FRAMES.body, stream)
    this.#slab[at] = is_last ? IS_LAST : 0
    bytes.copy(this.#slab, at + 1)
  }

  credit(stream: number, bytes: number): void {
    const at = this.#begin(4, FRAMES.credit, stream)
    writeUint32(this.#slab, at, bytes)
  }

  /** A frame without a payload. */
  mark(kind: number, stream = 0): void {
    this.#begin(0, kind, stream)
  }

  /** Returns the frames, and begins the next batch. The memory is not written again. */
  take(): Buffer {
    const bytes = this.#slab.subarray(this.#start, this.#end)
    this.#start = this.#end
    return bytes
  }

  /** Writes the head of a frame. Returns where its payload begins. */
  #begin(length: number, kind: number, stream: number): number {
    if (length > FRAME_BYTES_MAX) throw new Error('A frame of a trunk is too long.')
    const end = this.#end + HEAD_BYTES + length
    if (end > this.#slab.length) this.#grow(HEAD_BYTES + length)
    const [at, slab] = [this.#end, this.#slab]
    writeUint32(slab, at, length)
    slab[at + 4] = kind
    writeUint32(slab, at + 5, stream)
    this.#end = at + HEAD_BYTES + length
    return at + HEAD_BYTES
  }

  #grow(wanted: number): void {
    const before = this.#slab.subarray(this.#start, this.#end)
    this.#slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, 2 * (before.length + wanted)))
    before.copy(this.#slab)
    this.#start = 0
    this.#end = before.length
  }
}

/** Called with the payload, from `start` to `end`. Returns false for a frame that is not valid: the trunk is to be closed. */
export type OnFrame = (kind: number, stream: number, bytes: Buffer, start: number, end: number) => boolean

/** Finds frames in bytes that arrive in any pieces. */
export class FrameReader {
  readonly #onFrame: OnFrame
  /** The beginning of a frame. */
  #rest: Buffer | null = null
  /** Bytes of `#rest` that are used. */
  #rest_length = 0

  constructor(onFrame: OnFrame) {
    this.#onFrame = onFrame
  }

  /** Reads the first `length` of `bytes`, which are not kept. Returns false for bytes that are no frames. */
  read(bytes: Buffer, length: number = bytes.length): boolean {
    let at = 0
    while (this.#rest !== null && at < length) {
      const wanted = this.#rest_length < HEAD_BYTES ? HEAD_BYTES : HEAD_BYTES + readUint32(this.#rest, 0)
      const taken = Math.min(wanted - this.#rest_length, length - at)
      bytes.copy(this.#rest, this.#rest_length, at, at + taken)
      this.#rest_length += taken
      at += taken
      if (this.#rest_length < wanted) return true
      if (!this.#onRest(wanted)) return false
    }
    while (length - at >= HEAD_BYTES) {
      const payload = readUint32(bytes, at)
      if (payload > FRAME_BYTES_MAX) return false
      const end = at + HEAD_BYTES + payload
      if (end > length) break
      if (!this.#onFrame(bytes[at + 4]!, readUint32(bytes, at + 5), bytes, at + HEAD_BYTES, end)) return false
      at = end
    }
    if (at < length) this.#keep(bytes, at, length)
    return true
  }

  /** `#rest` has all that was wanted: a head, or a whole frame. */
  #onRest(wanted: number): boolean {
    const rest = this.#rest!
    const payload = readUint32(rest, 0)
    if (payload > FRAME_BYTES_MAX) return false
    const whole = HEAD_BYTES + payload
    if (wanted < whole) {
      this.#rest = Buffer.allocUnsafeSlow(whole)
      rest.copy(this.#rest, 0, 0, HEAD_BYTES)
      return true
    }
    this.#rest = null
    this.#rest_length = 0
    return this.#onFrame(rest[4]!, readUint32(rest, 5), rest, HEAD_BYTES, whole)
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    const whole = end - start < HEAD_BYTES ? HEAD_BYTES : HEAD_BYTES + readUint32(bytes, start)
    this.#rest = Buffer.allocUnsafeSlow(whole)
    this.#rest_length = bytes.copy(this.#rest, 0, start, end)
  }
}

/** Returns null for a payload that is no request. `body`: a part of `bytes`. */
export function readRequest(bytes: Buffer, start: number, end: number): (TrunkRequest & { body: Buffer }) | null {
  if (end - start < REQUEST_FIELDS_BYTES) return null
  const flags = bytes[start]!
  const method_length = bytes[start + 1]!
  const ip_length = bytes[start + 2]!
  const ray_length = bytes[start + 3]!
  const path_length = readUint16(bytes, start + 4)
  const lines_length = readUint16(bytes, start + 6)
  const text_start = start + REQUEST_FIELDS_BYTES
  const path_end = method_length + path_length
  const ip_end = path_end + ip_length
  const ray_end = ip_end + ray_length
  const text_end = text_start + ray_end + lines_length
  if (method_length === 0 || path_length === 0 || text_end > end) return null
  const text = bytes.toString('latin1', text_start, text_end)
  return {
    method: text.slice(0, method_length),
    path: text.slice(method_length, path_end),
    client_ip: text.slice(path_end, ip_end),
    ray_id: text.slice(ip_end, ray_end),
    lines: text.slice(ray_end),
    is_secure: (flags & IS_SECURE) !== 0,
    has_length: (flags & HAS_LENGTH) !== 0,
    asks_shard: (flags & ASKS_SHARD) !== 0,
    body: bytes.subarray(text_end, end),
  }
}

/** Where the body of the frame begins, and whether it is the last one of its stream. */
export type TrunkBody = { body_start: number; is_last: boolean }

/** Returns null for a payload that is no response. */
export function readResponse(bytes: Buffer, start: number, end: number): (TrunkResponse & TrunkBody) | null {
  if (end - start < RESPONSE_FIELDS_BYTES) return null
  const flags = bytes[start]!
  const kept_length = bytes[start + 1]!
  const status = readUint16(bytes, start + 2)
  const body_length = readUint32(bytes, start + 6)
  const shard = readUint32(bytes, start + 10)
  const kept_start = start + RESPONSE_FIELDS_BYTES
  const lines_start = kept_start + kept_length
  const body_start = lines_start + readUint16(bytes, start + 4)
  if (body_start > end || status < STATUS_MIN || status > STATUS_MAX) return null
  return {
    status,
    lines: bytes.toString('latin1', lines_start, body_start),
    body_length: body_length === LENGTH_UNKNOWN ? null : body_length === LENGTH_NONE ? 'none' : body_length,
    ray_kept: (flags & HAS_KEPT) === 0 ? null : bytes.toString('latin1', kept_start, lines_start),
    shard: shard === NO_SHARD ? null : shard,
    body_start,
    is_last: (flags & IS_LAST) !== 0,
  }
}

const [STATUS_MIN, STATUS_MAX] = [200, 999]

/** Returns null for a payload that is no part of a body. */
export function readBody(bytes: Buffer, start: number, end: number): TrunkBody | null {
  return end === start ? null : { body_start: start + 1, is_last: (bytes[start]! & IS_LAST) !== 0 }
}

/** Returns 0 for a payload that is no credit. */
export function readCredit(bytes: Buffer, start: number, end: number): number {
  return end - start === 4 ? readUint32(bytes, start) : 0
}

function writeUint16(bytes: Buffer, at: number, value: number): void {
  bytes[at] = value >>> 8
  bytes[at + 1] = value
}

function writeUint32(bytes: Buffer, at: number, value: number): void {
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
}

function readUint16(bytes: Buffer, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!
}

function readUint32(bytes: Buffer, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
}
