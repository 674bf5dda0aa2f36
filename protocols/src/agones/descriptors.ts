// The messages and services of the Agones SDK, described at run time from their field numbers.
import {
  create,
  createFileRegistry,
  type DescFile,
  type DescMessage,
  type DescService,
  type MessageInitShape,
} from '@bufbuild/protobuf'
import {
  type DescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_field_mask,
  file_google_protobuf_wrappers,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt'

/** `type`: a scalar, or the whole name of a message, after `repeated ` or `map `, whose keys are strings. */
type Fields = Readonly<Record<string, readonly [number: number, type: string]>>
/** The names of the messages of a call. Before that of a stream: `stream `. */
type Methods = Readonly<Record<string, readonly [input: string, output: string]>>

const SCALARS: Readonly<Record<string, Type>> = {
  string: Type.STRING,
  int64: Type.INT64,
  int32: Type.INT32,
  bool: Type.BOOL,
}
const WELL_KNOWN = [file_google_protobuf_field_mask, file_google_protobuf_wrappers]

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

export const CORE = describeService('agones.dev.sdk', CORE_MESSAGES, CORE_METHODS)
export const BETA = describeService('agones.dev.sdk.beta', BETA_MESSAGES, BETA_METHODS)
export const ALPHA = describeService('agones.dev.sdk.alpha', ALPHA_MESSAGES, ALPHA_METHODS)
export const GAME_SERVER: DescMessage = CORE.method.getGameServer!.output

type MessageInit = MessageInitShape<typeof DescriptorProtoSchema>

function describeService(proto_package: string, messages: Record<string, Fields>, methods: Methods): DescService {
  const typeOf = (name: string) => `.${proto_package}.${name.replace('stream ', '')}`
  const file = create(FileDescriptorProtoSchema, {
    name: `${proto_package}.proto`,
    package: proto_package,
    syntax: 'proto3',
    dependency: WELL_KNOWN.map(({ proto }) => proto.name),
    messageType: nested('', messages, proto_package),
    service: [
      {
        name: 'SDK',
        method: Object.entries(methods).map(([name, [input, output]]) => ({
          name,
          inputType: typeOf(input),
          outputType: typeOf(output),
          clientStreaming: input.startsWith('stream '),
          serverStreaming: output.startsWith('stream '),
        })),
      },
    ],
  })
  const resolve = (name: string): DescFile | undefined => WELL_KNOWN.find(({ proto }) => proto.name === name)
  return createFileRegistry(file, resolve).getService(`${proto_package}.SDK`)!
}

/** The messages directly within another one. `outer`: its name with a dot; empty: those of the file. */
function nested(outer: string, messages: Record<string, Fields>, proto_package: string): MessageInit[] {
  return Object.entries(messages)
    .filter(([name]) => name.startsWith(outer) && !name.slice(outer.length).includes('.'))
    .map(([name, fields]) => ({
      name: name.slice(outer.length),
      field: Object.entries(fields).map(([field, [number, type]]) =>
        describeField(field, number, type, `${proto_package}.${name}`),
      ),
      nestedType: [...nested(`${name}.`, messages, proto_package), ...mapEntries(fields)],
    }))
}

function describeField(name: string, number: number, type: string, message: string) {
  if (type.startsWith('map ')) return describeField(name, number, `repeated ${message}.${entryName(name)}`, message)
  const is_repeated = type.startsWith('repeated ')
  const of = is_repeated ? type.slice('repeated '.length) : type
  const scalar = SCALARS[of]
  return create(FieldDescriptorProtoSchema, {
    name,
    number,
    jsonName: camelCase(name),
    label: is_repeated ? Label.REPEATED : Label.OPTIONAL,
    ...(scalar === undefined ? { type: Type.MESSAGE, typeName: `.${of}` } : { type: scalar }),
  })
}

/** A map is a repeated message of a key and a value. */
function mapEntries(fields: Fields): MessageInit[] {
  return Object.entries(fields)
    .filter(([, [, type]]) => type.startsWith('map '))
    .map(([name, [, type]]) => ({
      name: entryName(name),
      field: [describeField('key', 1, 'string', ''), describeField('value', 2, type.slice('map '.length), '')],
      options: { mapEntry: true },
    }))
}

function entryName(field: string): string {
  return `${field[0]!.toUpperCase()}${camelCase(field).slice(1)}Entry`
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
