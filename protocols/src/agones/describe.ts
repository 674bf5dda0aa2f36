// Messages and services of gRPC, described at run time from their field numbers.
import { create, createFileRegistry, type DescFile, type DescService, type MessageInitShape } from '@bufbuild/protobuf'
import {
  type DescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_field_mask,
  file_google_protobuf_wrappers,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt'

/**
 * `type`: a scalar, or the whole name of a message, after `repeated ` or `map `, whose keys are strings. After `enum `: the
 * whole name of an enum.
 */
export type Fields = Readonly<Record<string, readonly [number: number, type: string]>>
/** The names of the messages of a call. Before that of a stream: `stream `. */
export type Methods = Readonly<Record<string, readonly [input: string, output: string]>>
/** Enums within messages: their values in order, from 0. */
export type Enums = Readonly<Record<string, readonly string[]>>

export type ServiceDescription = {
  proto_package: string
  service: string
  messages: Record<string, Fields>
  methods: Methods
  enums?: Enums
}

const SCALARS: Readonly<Record<string, Type>> = {
  string: Type.STRING,
  int64: Type.INT64,
  uint64: Type.UINT64,
  int32: Type.INT32,
  bool: Type.BOOL,
}
const WELL_KNOWN = [file_google_protobuf_field_mask, file_google_protobuf_wrappers]

type MessageInit = MessageInitShape<typeof DescriptorProtoSchema>

export function describeService({
  proto_package,
  service,
  messages,
  methods,
  enums = {},
}: ServiceDescription): DescService {
  const typeOf = (name: string) => `.${proto_package}.${name.replace('stream ', '')}`
  const file = create(FileDescriptorProtoSchema, {
    name: `${proto_package}.proto`,
    package: proto_package,
    syntax: 'proto3',
    dependency: WELL_KNOWN.map(({ proto }) => proto.name),
    messageType: nested('', { proto_package, messages, enums }),
    service: [
      {
        name: service,
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
  return createFileRegistry(file, resolve).getService(`${proto_package}.${service}`)!
}

/** The messages directly within another one. `outer`: its name with a dot; empty: those of the file. */
function nested(
  outer: string,
  all: Required<Pick<ServiceDescription, 'proto_package' | 'messages' | 'enums'>>,
): MessageInit[] {
  const { proto_package, messages, enums } = all
  return Object.entries(messages)
    .filter(([name]) => name.startsWith(outer) && !name.slice(outer.length).includes('.'))
    .map(([name, fields]) => ({
      name: name.slice(outer.length),
      field: Object.entries(fields).map(([field, [number, type]]) =>
        describeField(field, number, type, `${proto_package}.${name}`),
      ),
      nestedType: [...nested(`${name}.`, all), ...mapEntries(fields)],
      enumType: enumsIn(`${name}.`, enums),
    }))
}

function enumsIn(outer: string, enums: Enums): NonNullable<MessageInit['enumType']> {
  return Object.entries(enums)
    .filter(([name]) => name.startsWith(outer))
    .map(([name, values]) => ({
      name: name.slice(outer.length),
      value: values.map((value, number) => ({ name: value, number })),
    }))
}

function describeField(name: string, number: number, type: string, message: string) {
  if (type.startsWith('map ')) return describeField(name, number, `repeated ${message}.${entryName(name)}`, message)
  if (type.startsWith('enum ')) {
    const [label, typeName] = [Label.OPTIONAL, `.${type.slice('enum '.length)}`]
    return create(FieldDescriptorProtoSchema, { name, number, jsonName: name, label, type: Type.ENUM, typeName })
  }
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
