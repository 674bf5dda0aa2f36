// The standard input of a lobby in a container: one connection to the engine for each lobby that input was written to. The
// engine buffers some hundred kilobytes for a server that does not read.
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { INPUT_WAIT_MS_MAX, type InputResult } from '../../../lobby-logs/lobby-logs.ts'
import { type EngineClient, EngineError } from './engine.ts'

const WRITE_POLL_MS = 20
/** Bytes of one line with its newline. A Unix socket takes so few whole or not at all. */
const LINE_BYTES_MAX = 4_096

export class ContainerInputs {
  readonly #engine: EngineClient
  /** By container. */
  readonly #sockets = new Map<string, Promise<Socket>>()

  constructor(engine: EngineClient) {
    this.#engine = engine
  }

  async write(container: string, text: string): Promise<InputResult> {
    const line = Buffer.from(`${text}\n`)
    if (line.length > LINE_BYTES_MAX) throw new Error('A line of input is longer than is written at once.')
    const end_ms = performance.now() + INPUT_WAIT_MS_MAX
    let socket: Socket
    try {
      socket = await this.#socketOf(container)
    } catch (error) {
      this.#sockets.delete(container)
      // The container has ended or was removed.
      if (error instanceof EngineError) return 'not_running'
      throw error
    }
    if (!(await isTaken(socket, end_ms))) return socket.destroyed ? 'not_running' : 'not_read'
    socket.write(line)
    if (await isTaken(socket, end_ms)) return 'written'
    const was_closed = socket.destroyed
    // The line has not left this process, and must not be sent later.
    this.close(container)
    return was_closed ? 'not_running' : 'not_read'
  }

  close(container: string): void {
    const opening = this.#sockets.get(container)
    this.#sockets.delete(container)
    opening?.then((socket) => socket.destroy()).catch(() => undefined)
  }

  closeAll(): void {
    for (const container of this.#sockets.keys()) this.close(container)
  }

  #socketOf(container: string): Promise<Socket> {
    const known = this.#sockets.get(container)
    if (known !== undefined) return known
    const opening = this.#engine
      .attach(`/containers/${container}/attach`, { stream: '1', stdin: '1' })
      .then((socket) => {
        socket.on('error', () => undefined)
        socket.once('close', () => this.#sockets.delete(container))
        socket.resume()
        socket.unref()
        return socket
      })
    this.#sockets.set(container, opening)
    return opening
  }
}

/** Whether the system has taken all that was written, within the time. */
async function isTaken(socket: Socket, end_ms: number): Promise<boolean> {
  while (!socket.destroyed) {
    if (socket.writableLength === 0) return true
    if (performance.now() >= end_ms) return false
    await sleep(WRITE_POLL_MS)
  }
  return false
}
