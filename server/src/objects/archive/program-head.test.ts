import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileFault, headFault, headFaultText, readScript } from './program-head.ts'

/** The first 20 bytes of an ELF file. */
function elf(machine: number, byte_order = 1): Buffer {
  const head = Buffer.alloc(20)
  head.write('\x7fELF\x02', 'latin1')
  head[5] = byte_order
  if (byte_order === 1) head.writeUInt16LE(machine, 18)
  else head.writeUInt16BE(machine, 18)
  return head
}

test('the first bytes say which machine runs a program, and the sentence names both', () => {
  const of = (head: Buffer | string, arch: string) =>
    headFault(typeof head === 'string' ? Buffer.from(head, 'latin1') : head, arch)
  for (const [number, arch] of [
    [62, 'x64'],
    [3, 'x64'],
    [183, 'arm64'],
    [40, 'arm64'],
  ] as const)
    assert.equal(of(elf(number), arch), null)
  assert.equal(of(elf(183), 'x64'), 'elf:arm64')
  assert.equal(of(elf(62), 'arm64'), 'elf:amd64')
  assert.equal(of(elf(22, 2), 'x64'), 'elf:s390x')
  assert.equal(of(elf(62, 2), 'x64'), 'elf:amd64')
  assert.equal(of(elf(999), 'x64'), 'elf:machine 999')
  assert.equal(of('\x7fELF\x02', 'x64'), null, 'too short to say')
  assert.equal(of('MZ\x90', 'x64'), 'windows')
  assert.equal(of('\xcf\xfa\xed\xfe', 'x64'), 'macos')
  assert.equal(of('\xca\xfe\xba\xbe\0\0\0\x02', 'x64'), 'macos', 'for several machines')
  assert.equal(of('PK\x03\x04', 'x64'), 'zip')
  assert.equal(of('GDPC\x02', 'x64'), 'godot_pack')
  assert.equal(of('#!/bin/sh\r\necho', 'x64'), 'carriage_return')
  assert.equal(of('#!/bin/sh\necho\r\n', 'x64'), null)
  assert.equal(of('\xef\xbb\xbf#!/bin/sh\n', 'x64'), 'byte_order_mark')
  for (const text of ['', '#', 'echo', '\xca\xfe\xba\xbe\0\0\0\x3d']) assert.equal(of(text, 'x64'), null, text)
  assert.equal(
    headFaultText('elf:arm64', 'x64'),
    'is built for arm64; this machine is amd64: build the server for linux/amd64.',
  )
})

test('a file that another program runs is no program, and the sentence says how args begin', () => {
  const of = (text: string, path: string, is_executable = true) =>
    fileFault(Buffer.from(text, 'latin1'), path, is_executable)
  assert.equal(of('import http', 'server/main.mjs'), 'run_by:node')
  assert.equal(of('MZ\x90', 'Server.dll', false), 'run_by:dotnet')
  assert.equal(of('PK\x03\x04', 'server.JAR', false), 'run_by:java -jar')
  assert.equal(of('import http', 'main.mjs', false), null, 'a module of many')
  assert.equal(of('#!/usr/bin/env node\n', 'main.mjs'), null)
  assert.equal(of('\xef\xbb\xbf#!/bin/sh\n', 'main.py'), 'byte_order_mark')
  assert.equal(of('echo', 'run.sh'), null)
  assert.equal(
    headFaultText('run_by:java -jar'),
    'is not a program: java runs it. Let args begin with "java", "-jar", and then this file.',
  )
})

test('the interpreter of a script is the first word after #!', () => {
  const of = (text: string) => readScript(Buffer.from(text))
  assert.deepEqual(of('#!/bin/sh\n'), { interpreter: '/bin/sh', argument: null })
  assert.deepEqual(of('#! /usr/bin/env  node --test\nx'), { interpreter: '/usr/bin/env', argument: 'node --test' })
  for (const text of ['#!', '#!\n/bin/sh', 'x', ' #!/bin/sh']) assert.equal(of(text), null, text)
})
