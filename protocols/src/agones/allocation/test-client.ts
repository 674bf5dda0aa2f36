// A client of the allocation service, for tests.
import type { SecureClientSessionOptions } from 'node:http2'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { ALLOCATION_SERVICE } from './messages.ts'

export type AllocationClient = { allocate: (request: object) => Promise<object> }

export function createAllocationClient(baseUrl: string, nodeOptions: SecureClientSessionOptions): AllocationClient {
  return createClient(ALLOCATION_SERVICE, createGrpcTransport({ baseUrl, nodeOptions })) as unknown as AllocationClient
}
