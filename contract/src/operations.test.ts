import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { openapiDocument } from './openapi.ts'
import type { Operation } from './operation.ts'
import { OPERATIONS } from './operations.ts'

test('every address of an operation is a path of openapi.json, with an operationId of its own', () => {
  const { paths } = openapiDocument('0')
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const served = OPERATIONS.flatMap(({ method, path, aliases }) => [path, ...aliases].map((at) => `${method} ${at}`))
  assert.deepEqual(described.toSorted(), served.toSorted())
  const ids = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId))
  assert.equal(new Set(ids).size, served.length)
  assert.ok(described.includes('POST /v1/lobbies/find'))
})

test('every operation of a cloud token on its game is open to users, and names the role they need', () => {
  for (const { id, auth, role, params } of OPERATIONS) {
    const acts_on_group = Object.keys(params.properties).some((name) => name === 'group_id' || name === 'game_id')
    if (acts_on_group && auth.includes('cloud')) assert.ok(auth.includes('user'), `${id} takes no user.`)
    if (acts_on_group && auth.includes('user')) assert.ok(role !== null, `${id} names no role.`)
    if (role !== null) assert.ok(auth.includes('user'), `${id} names a role for nobody.`)
  }
})

test('an operation is implemented in the file of the same name as it is declared in', async () => {
  const roots = {
    declared: new URL('./', import.meta.url),
    implemented: new URL('../../server/src/http/', import.meta.url),
  }
  let count = 0
  for await (const file of glob('{cloud,matchmaker,identity,kv}/*.ts', { cwd: roots.declared })) {
    const module = (await import(new URL(file, roots.declared).href)) as Record<string, unknown>
    const names = Object.keys(module).filter((name) => OPERATIONS.includes(module[name] as Operation))
    if (names.length === 0) continue
    const source = await readFile(new URL(file, roots.implemented), 'utf8')
    for (const name of names) assert.ok(source.includes(`implement(${name},`), `${file} does not implement ${name}.`)
    count += names.length
  }
  assert.equal(count, OPERATIONS.length)
})
