// The messages and services of the Agones SDK.
import type { DescMessage } from '@bufbuild/protobuf'
import { describeService, type Fields, type Methods } from './describe.ts'

const CORE_MESSAGES: Record<string, Fields> = {
  Empty: {},
  KeyValue: { key: [1, 'string'], value: [2, 'string'] },
  Duration: { seconds: [1, 'int64'] },
  GameServer: {
    object_meta: [1, 'agones.dev.sdk.GameServer.ObjectMeta'],
    spec: [2, 'agones.dev.sdk.GameServer.Spec'],
    status: [3, 'agones.dev.sdk.GameServer.Status'],
  },
  'GameServer.ObjectMeta': {
    name: [1, 'string'],
    namespace: [2, 'string'],
    uid: [3, 'string'],
    resource_version: [4, 'string'],
    generation: [5, 'int64'],
    creation_timestamp: [6, 'int64'],
    deletion_timestamp: [7, 'int64'],
    annotations: [8, 'map string'],
    labels: [9, 'map string'],
  },
  'GameServer.Spec': { health: [1, 'agones.dev.sdk.GameServer.Spec.Health'] },
  'GameServer.Spec.Health': {
    disabled: [1, 'bool'],
    period_seconds: [2, 'int32'],
    failure_threshold: [3, 'int32'],
    initial_delay_seconds: [4, 'int32'],
  },
  'GameServer.Status': {
    state: [1, 'string'],
    address: [2, 'string'],
    ports: [3, 'repeated agones.dev.sdk.GameServer.Status.Port'],
    players: [4, 'agones.dev.sdk.GameServer.Status.PlayerStatus'],
    counters: [5, 'map agones.dev.sdk.GameServer.Status.CounterStatus'],
    lists: [6, 'map agones.dev.sdk.GameServer.Status.ListStatus'],
    addresses: [7, 'repeated agones.dev.sdk.GameServer.Status.Address'],
  },
  'GameServer.Status.Port': { name: [1, 'string'], port: [2, 'int32'] },
  'GameServer.Status.PlayerStatus': { count: [1, 'int64'], capacity: [2, 'int64'], ids: [3, 'repeated string'] },
  'GameServer.Status.CounterStatus': { count: [1, 'int64'], capacity: [2, 'int64'] },
  'GameServer.Status.ListStatus': { capacity: [1, 'int64'], values: [2, 'repeated string'] },
  'GameServer.Status.Address': { type: [1, 'string'], address: [2, 'string'] },
}

const CORE_METHODS: Methods = {
  Ready: ['Empty', 'Empty'],
  Allocate: ['Empty', 'Empty'],
  Shutdown: ['Empty', 'Empty'],
  Health: ['stream Empty', 'Empty'],
  GetGameServer: ['Empty', 'GameServer'],
  WatchGameServer: ['Empty', 'stream GameServer'],
  SetLabel: ['KeyValue', 'Empty'],
  SetAnnotation: ['KeyValue', 'Empty'],
  Reserve: ['Duration', 'Empty'],
}

const BETA_MESSAGES: Record<string, Fields> = {
  Counter: { name: [1, 'string'], count: [2, 'int64'], capacity: [3, 'int64'] },
  CounterUpdateRequest: {
    name: [1, 'string'],
    count: [2, 'google.protobuf.Int64Value'],
    capacity: [3, 'google.protobuf.Int64Value'],
    countDiff: [4, 'int64'],
  },
  GetCounterRequest: { name: [1, 'string'] },
  UpdateCounterRequest: { counterUpdateRequest: [1, 'agones.dev.sdk.beta.CounterUpdateRequest'] },
  List: { name: [1, 'string'], capacity: [2, 'int64'], values: [3, 'repeated string'] },
  GetListRequest: { name: [1, 'string'] },
  UpdateListRequest: { list: [1, 'agones.dev.sdk.beta.List'], update_mask: [2, 'google.protobuf.FieldMask'] },
  AddListValueRequest: { name: [1, 'string'], value: [2, 'string'] },
  RemoveListValueRequest: { name: [1, 'string'], value: [2, 'string'] },
}

const BETA_METHODS: Methods = {
  GetCounter: ['GetCounterRequest', 'Counter'],
  UpdateCounter: ['UpdateCounterRequest', 'Counter'],
  GetList: ['GetListRequest', 'List'],
  UpdateList: ['UpdateListRequest', 'List'],
  AddListValue: ['AddListValueRequest', 'List'],
  RemoveListValue: ['RemoveListValueRequest', 'List'],
}

const ALPHA_MESSAGES: Record<string, Fields> = {
  Empty: {},
  Count: { count: [1, 'int64'] },
  Bool: { bool: [1, 'bool'] },
  PlayerID: { playerID: [1, 'string'] },
  PlayerIDList: { list: [1, 'repeated string'] },
}

const ALPHA_METHODS: Methods = {
  PlayerConnect: ['PlayerID', 'Bool'],
  PlayerDisconnect: ['PlayerID', 'Bool'],
  SetPlayerCapacity: ['Count', 'Empty'],
  GetPlayerCapacity: ['Empty', 'Count'],
  GetPlayerCount: ['Empty', 'Count'],
  IsPlayerConnected: ['PlayerID', 'Bool'],
  GetConnectedPlayers: ['Empty', 'PlayerIDList'],
}

export const CORE = sdkOf('agones.dev.sdk', CORE_MESSAGES, CORE_METHODS)
export const BETA = sdkOf('agones.dev.sdk.beta', BETA_MESSAGES, BETA_METHODS)
export const ALPHA = sdkOf('agones.dev.sdk.alpha', ALPHA_MESSAGES, ALPHA_METHODS)
export const GAME_SERVER: DescMessage = CORE.method.getGameServer!.output

function sdkOf(proto_package: string, messages: Record<string, Fields>, methods: Methods) {
  return describeService({ proto_package, service: 'SDK', messages, methods })
}
