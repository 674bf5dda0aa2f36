// What the other processes of the platform add to the requests of a role: the edge parks requests, and matchmakers send each
// other those of their books. peers/ implements it. To the rest of http/, and to every handler, a platform has one process.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Operation } from '@musterhost/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../tokens/caller.ts'
import type { OperationRequest } from './implement.ts'

/** Whether the caller of a request still waits. */
export type Presence = {
  /** Whether the caller has hung up. */
  isGone: () => boolean
  /** Calls the listener when the caller hangs up; it may also be called after the response has left. */
  onGone: (listener: () => void) => void
  /** The handler has ended. */
  end: () => void
}

export type RunningCall = { request: FastifyRequest; reply: FastifyReply; call: OperationRequest<Operation> }

export type PeerPort = {
  /** The caller that another process has authenticated. Null: the request came from a client. */
  callerOf: (request: FastifyRequest) => Caller | null
  /** Whether another process counts the request against the rate of its caller. */
  isCountedElsewhere: (request: FastifyRequest, caller: Caller) => boolean
  /** Adds the headers that an edge asks for. */
  onAdmitted: (request: FastifyRequest, reply: FastifyReply, caller: Caller) => void
  /** Null: the caller is there as long as its connection. `since`: by performance.now(). */
  enter: (request: FastifyRequest, reply: FastifyReply, since: number) => Presence | null
  /** Calls `run`, which runs the handler, or has another process run the operation. Then it returns `reply`. */
  run: (operation: Operation, running: RunningCall, run: () => unknown) => unknown
  /** Responds to a request that is no operation. False: the request is an ordinary one. */
  serve: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Whether the upgrade is given to accept(). */
  isUpgrade: (request: IncomingMessage) => boolean
  accept: (request: IncomingMessage, socket: Duplex) => void
}
