// A GameLift SDK for tests, written from the tables of its protocol. It shares no code with the endpoint.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { WebSocket } from 'ws'
import { FACTS } from '../test-lobby.ts'
import { until } from '../test-server.ts'

export const SECRET = 'secret-of-the-lobby'
const PUSHED = ['CreateGameSession', 'UpdateGameSession', 'TerminateProcess', 'RefreshConnection'] as const
export type Message = Record<string, unknown>

/** An SDK as the table has it: a push is known by its Action, and no push may look like a response that failed. */
export class StrictSdk {
  readonly socket: WebSocket
  readonly pushes: Message[] = []
  readonly #waiting = new Map<string, { action: string; resolve: (message: Message) => void }>()
  is_closed = false

  constructor(port: number, query: Record<string, string> = { Authorization: SECRET }) {
    const members = {
      pID: FACTS.lobby_id,
      sdkVersion: '5.6.0',
      sdkLanguage: 'Go',
      ComputeId: 'c',
      FleetId: 'f',
      ...query,
    }
    this.socket = new WebSocket(`ws://127.0.0.1:${port}?${new URLSearchParams(members)}`)
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.is_closed = true
    })
    this.socket.on('message', (data, is_binary) => {
      assert.equal(is_binary, false)
      this.#read(JSON.parse(String(data)))
    })
  }

  #read(message: Message): void {
    const action = message.Action as string
    if (PUSHED.some((one) => one === action)) {
      assert.ok(!('RequestId' in message), 'a push has no RequestId')
      assert.ok(message.StatusCode === undefined || message.StatusCode === 200)
      this.pushes.push(message)
      return
    }
    const waiting = this.#waiting.get(message.RequestId as string)
    assert.ok(waiting !== undefined, 'a response has the RequestId of a request')
    assert.equal(action, waiting.action)
    assert.equal(typeof message.StatusCode, 'number')
    assert.equal(typeof message.ErrorMessage, 'string')
    this.#waiting.delete(message.RequestId as string)
    waiting.resolve(message)
  }

  open(): Promise<void> {
    return until('the connection', () => this.socket.readyState === WebSocket.OPEN)
  }

  ask(action: string, members: Message = {}): Promise<Message> {
    const RequestId = randomUUID()
    return new Promise((resolve) => {
      this.#waiting.set(RequestId, { action, resolve })
      this.socket.send(JSON.stringify({ Action: action, RequestId, ...members }))
    })
  }

  async ok(action: string, members: Message = {}): Promise<Message> {
    const message = await this.ask(action, members)
    assert.equal(message.StatusCode, 200, String(message.ErrorMessage))
    return message
  }

  async refused(action: string, members: Message = {}): Promise<string> {
    const message = await this.ask(action, members)
    assert.equal(message.StatusCode, 400)
    assert.notEqual(message.ErrorMessage, '')
    return String(message.ErrorMessage)
  }

  async pushed(action: (typeof PUSHED)[number]): Promise<Message> {
    await until(action, () => this.pushes.some(({ Action }) => Action === action))
    return this.pushes.find(({ Action }) => Action === action) ?? {}
  }

  /** ProcessReady. Returns the id of the game session. */
  async activate(): Promise<string> {
    const members = { SdkVersion: '5.6.0', SdkLanguage: 'Go', Port: 7777, LogPaths: ['/scratch/logs'] }
    await this.ok('ActivateServerProcess', members)
    return (await this.pushed('CreateGameSession')).GameSessionId as string
  }
}
