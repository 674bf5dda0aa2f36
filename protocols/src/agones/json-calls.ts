// Calls of Agones as JSON over HTTP, for its SDK and its allocation service alike.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fromJson, type JsonValue } from '@bufbuild/protobuf'
import { RequestError, readJson, sendJson } from '../http-body.ts'
import { CallError } from './call-error.ts'

const MESSAGE_LENGTH_MAX = 200

/** Undefined: the body is empty. Throws a CallError. */
export async function readBody(request: IncomingMessage): Promise<JsonValue | undefined> {
  try {
    return (await readJson(request)) as JsonValue | undefined
  } catch (error) {
    if (!(error instanceof RequestError)) throw new CallError('INVALID_ARGUMENT', 'The request ended early.')
    throw new CallError(error.status === 413 ? 'RESOURCE_EXHAUSTED' : 'INVALID_ARGUMENT', error.message)
  }
}

/** The message. Members that it does not have are left out. Throws a CallError. */
export function requireRequest(schema: Parameters<typeof fromJson>[0], json: JsonValue): Record<string, unknown> {
  try {
    return fromJson(schema, json, { ignoreUnknownFields: true }) as unknown as Record<string, unknown>
  } catch (error) {
    throw new CallError('INVALID_ARGUMENT', (error as Error).message.slice(0, MESSAGE_LENGTH_MAX))
  }
}

export function sendRefusal(response: ServerResponse, { code, status, message }: CallError): void {
  sendJson(response, status, { code, message, details: [] })
}
