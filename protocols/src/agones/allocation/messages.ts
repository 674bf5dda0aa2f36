// The messages of the allocation service of Agones. What an allocation here does not use is described too, so that a request
// with it can be read.
import type { DescMessage } from '@bufbuild/protobuf'
import { describeService, type Fields } from '../describe.ts'

const MESSAGES: Record<string, Fields> = {
  AllocationRequest: {
    namespace: [1, 'string'],
    requiredGameServerSelector: [3, 'allocation.GameServerSelector'],
    preferredGameServerSelectors: [4, 'repeated allocation.GameServerSelector'],
    metaPatch: [6, 'allocation.MetaPatch'],
    metadata: [7, 'allocation.MetaPatch'],
    gameServerSelectors: [8, 'repeated allocation.GameServerSelector'],
    counters: [10, 'map allocation.CounterAction'],
    lists: [11, 'map allocation.ListAction'],
  },
  GameServerSelector: {
    matchLabels: [1, 'map string'],
    gameServerState: [2, 'enum allocation.GameServerSelector.GameServerState'],
  },
  MetaPatch: { labels: [1, 'map string'], annotations: [2, 'map string'] },
  CounterAction: {
    action: [1, 'google.protobuf.StringValue'],
    amount: [2, 'google.protobuf.Int64Value'],
    capacity: [3, 'google.protobuf.Int64Value'],
  },
  ListAction: {
    addValues: [1, 'repeated string'],
    capacity: [2, 'google.protobuf.Int64Value'],
    deleteValues: [3, 'repeated string'],
  },
  AllocationResponse: {
    gameServerName: [2, 'string'],
    ports: [3, 'repeated allocation.AllocationResponse.GameServerStatusPort'],
    address: [4, 'string'],
    nodeName: [5, 'string'],
    source: [6, 'string'],
    metadata: [7, 'allocation.AllocationResponse.GameServerMetadata'],
    addresses: [8, 'repeated allocation.AllocationResponse.GameServerStatusAddress'],
    counters: [9, 'map allocation.AllocationResponse.CounterStatus'],
    lists: [10, 'map allocation.AllocationResponse.ListStatus'],
  },
  'AllocationResponse.GameServerStatusPort': { name: [1, 'string'], port: [2, 'int32'] },
  'AllocationResponse.GameServerStatusAddress': { type: [1, 'string'], address: [2, 'string'] },
  'AllocationResponse.GameServerMetadata': { labels: [1, 'map string'], annotations: [2, 'map string'] },
  'AllocationResponse.CounterStatus': {
    count: [1, 'google.protobuf.Int64Value'],
    capacity: [2, 'google.protobuf.Int64Value'],
  },
  'AllocationResponse.ListStatus': { values: [1, 'repeated string'], capacity: [2, 'google.protobuf.Int64Value'] },
}

export const ALLOCATION_SERVICE = describeService({
  proto_package: 'allocation',
  service: 'AllocationService',
  messages: MESSAGES,
  methods: { Allocate: ['AllocationRequest', 'AllocationResponse'] },
  enums: { 'GameServerSelector.GameServerState': ['READY', 'ALLOCATED'] },
})

const { input, output } = ALLOCATION_SERVICE.method.allocate!
export const ALLOCATION_REQUEST: DescMessage = input
export const ALLOCATION_RESPONSE: DescMessage = output

type Selector = { matchLabels: Record<string, string>; gameServerState: number }
type MetaPatch = { labels: Record<string, string>; annotations: Record<string, string> }

/** The members of a request as @bufbuild/protobuf reads them: wrapped values are plain, an absent message is undefined. */
export type AllocationRequest = {
  namespace: string
  requiredGameServerSelector?: Selector
  preferredGameServerSelectors: Selector[]
  metaPatch?: MetaPatch
  metadata?: MetaPatch
  gameServerSelectors: Selector[]
  counters: Record<string, { action?: string; amount?: bigint; capacity?: bigint }>
  lists: Record<string, { addValues: string[]; capacity?: bigint; deleteValues: string[] }>
}
