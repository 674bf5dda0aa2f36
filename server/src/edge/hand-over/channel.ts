// Messages between an edge and its successor, over a unix socket. A message is one line of JSON, and may carry one open
// handle. The kernel delivers a handle with the bytes of its message, and in their order. Node's own channel does the same
// between a parent and its child; these are not parent and child, so its internals are used directly.
import type { Socket } from 'node:net'
import { handleOf, type SocketHandle } from '../handles.ts'

/** Bytes of one line. The largest datagram in base64 takes 88 KiB. */
const LINE_BYTES_MAX = 128 * 1024
const NEWLINE = 0x0a

type Write = { oncomplete: (status: number) => void }
type PipeHandle = SocketHandle & {
  pendingHandle: SocketHandle | null
  onread: (bytes: ArrayBuffer | undefined) => void
  open: (fd: number) => number
  connect: (request: Write, path: string) => number
  writeUtf8String: (request: Write, text: string, handle?: SocketHandle) => number
}
type PipeModule = {
  Pipe: new (kind: number) => PipeHandle
  PipeConnectWrap: new () => Write
  constants: { IPC: number }
}
type StreamModule = { WriteWrap: new () => Write; streamBaseState: Int32Array }

/** Members of `streamBaseState`. */
const [READ_BYTES, READ_OFFSET, , IS_ASYNC] = [0, 1, 2, 3]

type Received = { message: unknown; handle: SocketHandle | null }

/** Throws in a version of Node that has no such modules. */
function internals(): PipeModule & StreamModule {
  const bindings = process as unknown as { binding: (name: string) => unknown }
  const pipes = bindings.binding('pipe_wrap') as PipeModule
  return { ...pipes, ...(bindings.binding('stream_wrap') as StreamModule) }
}

export class HandleChannel {
  readonly #node = internals()
  readonly #pipe: PipeHandle
  readonly #handles: SocketHandle[] = []
  readonly #received: Received[] = []
  #line: Buffer = Buffer.alloc(0)
  #wake: (() => void) | null = null
  #is_closed = false

  private constructor(pipe: PipeHandle) {
    this.#pipe = pipe
    pipe.pendingHandle = null
    pipe.onread = (bytes) => this.#onRead(bytes)
    pipe.readStart()
  }

  /** Resolves with null when nothing listens at the path. */
  static async connect(path: string): Promise<HandleChannel | null> {
    const { Pipe, PipeConnectWrap, constants } = internals()
    const pipe = new Pipe(constants.IPC)
    const { promise, resolve } = Promise.withResolvers<number>()
    const request = new PipeConnectWrap()
    request.oncomplete = resolve
    const error = pipe.connect(request, path)
    if ((error === 0 ? await promise : error) === 0) return new HandleChannel(pipe)
    pipe.close()
    return null
  }

  /**
   * `accepted`: of a server that pauses its connections. Its own handle stays open beside that of the channel, for one
   * number of a descriptor, and is therefore never closed; the process that accepts is the one that ends.
   */
  static over(accepted: Socket): HandleChannel {
    const { Pipe, constants } = internals()
    const handle = handleOf(accepted)
    if (handle === null) throw new Error('The connection is closed.')
    const pipe = new Pipe(constants.IPC)
    if (pipe.open(handle.fd) !== 0) throw new Error('The connection cannot carry handles.')
    Reflect.set(accepted, '_handle', null)
    KEPT.add(handle)
    return new HandleChannel(pipe)
  }

  get is_closed(): boolean {
    return this.#is_closed
  }

  /** Resolves when the kernel has the message and a copy of the handle. Rejects when the other side is gone. */
  send(message: object, handle: SocketHandle | null = null): Promise<void> {
    const { WriteWrap, streamBaseState } = this.#node
    const text = `${JSON.stringify({ ...message, has_handle: handle !== null })}\n`
    return new Promise((resolve, reject) => {
      if (this.#is_closed) return reject(gone())
      const request = new WriteWrap()
      request.oncomplete = (status) => (status === 0 ? resolve() : reject(gone()))
      const error = this.#pipe.writeUtf8String(request, text, handle ?? undefined)
      if (error !== 0) reject(gone())
      else if (streamBaseState[IS_ASYNC] === 0) resolve()
    })
  }

  /** Resolves with the next message; null: the other side is gone. One caller at a time. */
  async receive(): Promise<Received | null> {
    for (;;) {
      const next = this.#received.shift()
      if (next !== undefined) return next
      if (this.#is_closed) return null
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
  }

  close(): void {
    if (this.#is_closed) return
    this.#is_closed = true
    this.#pipe.close()
    for (const handle of this.#handles.splice(0)) handle.close()
    for (const { handle } of this.#received.splice(0)) handle?.close()
    this.#wake?.()
  }

  #onRead(bytes: ArrayBuffer | undefined): void {
    const { pendingHandle } = this.#pipe
    this.#pipe.pendingHandle = null
    if (pendingHandle !== null) this.#handles.push(pendingHandle)
    if (bytes === undefined) {
      this.close()
      return
    }
    const { streamBaseState } = this.#node
    const chunk = Buffer.from(bytes, streamBaseState[READ_OFFSET], streamBaseState[READ_BYTES])
    this.#line = Buffer.concat([this.#line, chunk])
    for (let end = this.#line.indexOf(NEWLINE); end !== -1; end = this.#line.indexOf(NEWLINE)) {
      const message = JSON.parse(this.#line.toString('utf8', 0, end)) as { has_handle: boolean }
      this.#line = this.#line.subarray(end + 1)
      this.#received.push({ message, handle: message.has_handle ? (this.#handles.shift() ?? null) : null })
    }
    if (this.#line.length > LINE_BYTES_MAX) this.close()
    this.#wake?.()
  }
}

/** A collected handle would close its descriptor. */
const KEPT = new Set<SocketHandle>()

function gone(): Error {
  return new Error('The other edge is gone.')
}
