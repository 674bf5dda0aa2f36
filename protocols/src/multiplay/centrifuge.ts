// The Centrifuge protocol, version 1 as JSON: commands with an id, one a line, and a reply for each. Pure.
import { randomUUID } from 'node:crypto'
import { asRecord, type JsonRecord } from '../http-body.ts'

const COMMANDS_PER_FRAME_MAX = 64
const CONNECT = 0
const SUBSCRIBE = 1
const UNSUBSCRIBE = 2
const PING = 7
const REFRESH = 10
const SUB_REFRESH = 11
const PERMISSION_DENIED = { code: 103, message: 'permission denied' }
const METHOD_NOT_FOUND = { code: 104, message: 'method not found' }

/** One connection. The only channel is the one of its server. */
export class CentrifugeConnection {
  readonly #channel: string
  readonly #client = randomUUID()
  is_subscribed = false

  constructor(channel: string) {
    this.#channel = channel
  }

  /** Returns the replies as one frame; empty when there is none. */
  receive(frame: string): string {
    const lines = frame.split('\n', COMMANDS_PER_FRAME_MAX)
    return lines.flatMap((line) => this.#reply(line)).join('\n')
  }

  /** A publication. It has no id, or a client would take it for a reply. */
  publication(data: JsonRecord): string {
    return JSON.stringify({ result: { channel: this.#channel, data: { data, offset: 0 } } })
  }

  /** A line that is no command, and a command without an id, have no reply. */
  #reply(line: string): string[] {
    const command = parse(line)
    if (command === null) return []
    const outcome = this.#outcome(command.method ?? CONNECT, asRecord(command.params) ?? {})
    const { id } = command
    return typeof id === 'number' && id > 0 ? [JSON.stringify({ id, ...outcome })] : []
  }

  #outcome(method: unknown, { channel }: JsonRecord): { result: object } | { error: object } {
    switch (method) {
      case CONNECT:
      case REFRESH:
        return { result: { client: this.#client, version: '1' } }
      case SUBSCRIBE:
        if (channel !== this.#channel) return { error: PERMISSION_DENIED }
        this.is_subscribed = true
        return { result: {} }
      case UNSUBSCRIBE:
        if (channel === this.#channel) this.is_subscribed = false
        return { result: {} }
      case PING:
      case SUB_REFRESH:
        return { result: {} }
      default:
        return { error: METHOD_NOT_FOUND }
    }
  }
}

function parse(line: string): JsonRecord | null {
  try {
    return asRecord(JSON.parse(line))
  } catch {
    return null
  }
}
