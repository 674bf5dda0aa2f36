// What the other processes of the platform add to the requests of a role: an edge sends them over one connection, and
// matchmakers send each other those of their books. peers/ implements it. To the rest of http/, and to every handler, a platform
// has one process.
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Operation } from '@musterhost/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../tokens/caller.ts'
import type { OperationRequest } from './implement.ts'

export type RunningCall = { request: FastifyRequest; reply: FastifyReply; call: OperationRequest<Operation> }

export type PeerPort = {
  /** The caller that another process has authenticated. Null: the request came from a client. */
  callerOf: (request: FastifyRequest) => Caller | null
  /** Whether another process counts the request against the rate of its caller. */
  isCountedElsewhere: (request: FastifyRequest, caller: Caller) => boolean
  /** Adds the headers that an edge asks for. */
  onAdmitted: (request: FastifyRequest, reply: FastifyReply, caller: Caller) => void
  /** Calls `run`, which runs the handler, or has another process run the operation. Then it returns `reply`. */
  run: (operation: Operation, running: RunningCall, run: () => unknown) => unknown
  /** Whether the upgrade is given to accept(). */
  isUpgrade: (request: IncomingMessage) => boolean
  /** Takes over the connection. Its requests are given to `handle`. `head`: what came behind the upgrade. */
  accept: (request: IncomingMessage, socket: Duplex, head: Buffer, handle: RequestListener) => void
}
