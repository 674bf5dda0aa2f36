// The ray of a request to the api or the matchmaker: opened when its head has arrived, ended when its response is made. A
// request of the edge brings its ray id along. All others receive a new one, whatever they send.
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../context.ts'
import { newRayId } from '../ids.ts'
import { ownerText, type Ray, type RayOwner, type RayService } from '../observe/ray.ts'
import type { Caller } from '../tokens/caller.ts'
import { edgeProof } from '../tokens/edge-proof.ts'
import { EDGE_PROOF_HEADER, RAY_HEADER, RAY_KEPT_HEADER } from '../wire/headers.ts'

declare module 'fastify' {
  interface FastifyRequest {
    ray: Ray | null
  }
}

export type RayIds = (request: IncomingMessage) => string

export function createRayIds(ctx: Context): RayIds {
  const proof = edgeProof(ctx.keys)
  return ({ headers }) => {
    const forwarded = headers[RAY_HEADER]
    return typeof forwarded === 'string' && headers[EDGE_PROOF_HEADER] === proof ? forwarded : newRayId()
  }
}

/** From here on every request has a ray, and every response carries its id. */
export function openRays(app: FastifyInstance, { recorder }: Context, service: RayService): void {
  app.decorateRequest('ray', null)
  app.addHook('onRequest', (request, reply, done) => {
    request.ray = recorder.open(service, request.id)
    reply.header(RAY_HEADER, request.id)
    done()
  })
}

/** Null: rays are off, or the framework refused the request before any hook. */
export function rayOf(request: FastifyRequest): Ray | null {
  return request.ray ?? null
}

/** Ends the ray with the response. The edge receives a header that says whether to keep its part, and the owner. */
export function endRay({ recorder }: Context, request: FastifyRequest, reply: FastifyReply, code: string | null): void {
  const ray = rayOf(request)
  if (ray === null) return
  if (ray.operation === '') ray.operation = request.routeOptions.url ?? ''
  // An id that was accepted is the edge's.
  if (!recorder.end(ray, code) || request.headers[RAY_HEADER] !== request.id) return
  reply.header(RAY_KEPT_HEADER, ownerText(ray.owner))
}

/** The owner of a request. For an administrator it is the user who has logged in, if any. */
export function ownerOf(caller: Caller): RayOwner {
  switch (caller.kind) {
    case 'anyone':
      return null
    case 'admin':
      return caller.user_id === null ? null : { kind: 'user', id: caller.user_id }
    case 'user':
      return { kind: 'user', id: caller.user_id }
    case 'cloud':
      return { kind: 'game', id: caller.game_id }
    default:
      return { kind: 'namespace', id: caller.namespace_id }
  }
}
