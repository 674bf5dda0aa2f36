// What the edge processes of a machine ask each other about players whose seats they check: the address that a player has, and that
// a player's earlier connections end. Each process listens at a unix socket of its own, also while it retires. A question and its
// answer are a line of JSON each.
import { once } from 'node:events'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { PlayerId } from '@musterhost/contract/edge'
import { StartError } from '../../config/start-error.ts'
import type { Context } from '../../context.ts'
import { SOCKET_PATH_BYTES_MAX } from '../limits.ts'

/** How long another process may take. One that does not answer has no connection that still works. */
const ANSWER_MS_MAX = 1_000
/** Questions under way at one process. */
const QUESTIONS_MAX = 1_024

/** `number`: of the raw port; null: the port is HTTP, and has this name. */
export type EndedPort = { player_id: string; number: number | null; port_name?: string }

type Question = { kind: 'end'; of: EndedPort } | { kind: 'addresses'; of: PlayerId }
type Answer = PlayerAddresses

/** `own`: of the player; null: none. `used`: those of all players of the lobby. */
export type PlayerAddresses = { own: string | null; used: string[] }

/** What this process answers. */
export type Asked = {
  end: (of: EndedPort) => Promise<void>
  addressesOf: (player: PlayerId) => PlayerAddresses
}

const NO_ADDRESSES: PlayerAddresses = { own: null, used: [] }

export class MachineEdges {
  readonly #folder: string
  readonly #name: string
  readonly #server: Server

  private constructor(folder: string, name: string, asked: Asked) {
    this.#folder = folder
    this.#name = name
    this.#server = createServer((socket) => void answer(socket, asked))
    this.#server.maxConnections = QUESTIONS_MAX
  }

  /** Null: this process is the only edge of the machine. Throws a StartError when the path of the data folder is too long. */
  static async open({ config }: Context, asked: Asked): Promise<MachineEdges | null> {
    if (config.process.count === 1) return null
    const folder = join(config.data_dir, 'edge', 'ask')
    const name = String(process.pid)
    if (Buffer.byteLength(join(folder, name)) > SOCKET_PATH_BYTES_MAX) {
      throw new StartError(
        `The path ${config.data_dir} is too long for several edge processes: shorten MUSTER_DATA, or set MUSTER_EDGE_PROCESSES=1.`,
      )
    }
    // A program that can enter the folder may end connections.
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    rmSync(join(folder, name), { force: true })
    const edges = new MachineEdges(folder, name, asked)
    edges.#server.listen(join(folder, name))
    await once(edges.#server, 'listening')
    return edges
  }

  /** Resolves when the player's connections to the port have ended at all other processes. */
  async endOf(of: EndedPort): Promise<void> {
    await this.#ask({ kind: 'end', of })
  }

  /** The addresses at all other processes. */
  async addressesOf({ player_id, lobby_id, namespace_id }: PlayerId): Promise<PlayerAddresses> {
    const answers = await this.#ask({ kind: 'addresses', of: { player_id, lobby_id, namespace_id } })
    return {
      own: answers.find(({ own }) => own !== null)?.own ?? null,
      used: answers.flatMap(({ used }) => used),
    }
  }

  async close(): Promise<void> {
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #ask(question: Question): Promise<Answer[]> {
    const names = readdirSync(this.#folder).filter((name) => name !== this.#name)
    const answers = await Promise.all(names.map((name) => ask(join(this.#folder, name), question)))
    return answers.filter((one) => one !== null)
  }
}

/** Null: the process has ended, or does not answer. */
async function ask(path: string, question: Question): Promise<Answer | null> {
  const socket = connect(path)
  const signal = AbortSignal.timeout(ANSWER_MS_MAX)
  signal.addEventListener('abort', () => socket.destroy(), { once: true })
  try {
    await once(socket, 'connect')
    socket.write(`${JSON.stringify(question)}\n`)
    for await (const line of createInterface({ input: socket })) return JSON.parse(line) as Answer
    return null
  } catch (error) {
    // The socket of a process that was killed.
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') rmSync(path, { force: true })
    return null
  } finally {
    socket.destroy()
  }
}

async function answer(socket: Socket, asked: Asked): Promise<void> {
  socket.on('error', () => {})
  socket.setTimeout(ANSWER_MS_MAX, () => socket.destroy())
  try {
    for await (const line of createInterface({ input: socket })) {
      const question = JSON.parse(line) as Question
      if (question.kind === 'end') await asked.end(question.of)
      const addresses: Answer = question.kind === 'addresses' ? asked.addressesOf(question.of) : NO_ADDRESSES
      socket.end(`${JSON.stringify(addresses)}\n`)
      return
    }
  } catch {
    // The other process is gone, or is of another version.
    socket.destroy()
  }
}
