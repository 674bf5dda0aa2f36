// Examples that are not commands: what a response looks like, parts of version configs, bodies, settings files, and lines
// that are taken from a file of this repository.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OPERATIONS } from '@musterhost/contract/operations'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { readRegions, thisMachine } from '../../../src/config/regions.ts'
import { lacking } from '../../run/optional-programs.ts'

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** The example has the members and types of what the command before it printed. */
export function requireSameShape(example: string, printed: string): void {
  const last = printed.trim().split('\n').at(-1) ?? ''
  assert.ok(last.startsWith('{'), `the last line is no JSON: ${printed}`)
  requireShape(JSON.parse(example), JSON.parse(last), 'response')
}

function requireShape(example: Json, value: Json, place: string): void {
  assert.equal(typeOf(value), typeOf(example), place)
  if (Array.isArray(example) && Array.isArray(value)) {
    const [first] = example
    if (first !== undefined) for (const item of value) requireShape(first, item, `${place}[]`)
  } else if (isObject(example) && isObject(value)) {
    assert.deepEqual(Object.keys(value).sort(), Object.keys(example).sort(), place)
    for (const [name, member] of Object.entries(example)) requireShape(member, value[name] ?? null, `${place}.${name}`)
  }
}

function typeOf(value: Json): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The version config with the members of the example at the place that the page names, such as `matchmaker.docker`. */
export function configWith(config: Json, place: string, example: string): Json {
  const names = place === '' ? [] : place.split('.')
  const change = names.reduceRight<Json>((inner, name) => ({ [name]: inner }), JSON.parse(`{${example}}`) as Json)
  return merge(config, change)
}

function merge(value: Json | undefined, change: Json): Json {
  if (!isObject(value) || !isObject(change)) return change
  const changed = Object.entries(change).map(([name, member]) => [name, merge(value[name], member)])
  return { ...value, ...Object.fromEntries(changed) }
}

export function requireBody(operation_id: string, example: string): void {
  const operation = OPERATIONS.find(({ id }) => id === operation_id)
  assert.ok(operation?.body, `${operation_id} has no body`)
  assert.deepEqual(createShapeCheck(operation.body)(JSON.parse(example)), [])
}

export function requireRegions(example: string): void {
  const mistakes: string[] = []
  withFile('muster.toml', example, (file) => readRegions(file, 'spread', thisMachine(), mistakes))
  assert.deepEqual(mistakes, [])
}

/** HAProxy checks a config without running it. Returns whether it is installed. */
export function requireHaproxy(example: string): boolean {
  if (lacking('haproxy') !== null) return false
  const times = 'defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n'
  const frontend = 'frontend players\n  bind 127.0.0.1:1\n  default_backend edges\n'
  const { status, stdout, stderr } = withFile('haproxy.cfg', `${times}${frontend}${example}\n`, (file) =>
    spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' }),
  )
  assert.equal(status, 0, `${stdout}${stderr}`)
  return true
}

/** Each line of the example is a line of the file. */
export function requireLinesOf(file: string, example: string): void {
  const lines = new Set(linesOf(readFileSync(file, 'utf8')))
  for (const line of linesOf(example)) assert.ok(lines.has(line), `${file} has no line: ${line}`)
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function withFile<T>(name: string, text: string, use: (file: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'muster-example-'))
  try {
    writeFileSync(join(folder, name), text)
    return use(join(folder, name))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
