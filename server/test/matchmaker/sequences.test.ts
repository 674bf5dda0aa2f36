// The life of a game in any order: sites and builds are prepared, sent, completed and deleted, versions made of them and
// put on namespaces, players seated, connected and gone. A plain model says what each call must answer; afterwards the
// platform is checked like a backup: every row, every seat and every byte.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import {
  ApiError,
  completeUpload,
  createGameBuild,
  createGameCdnSite,
  createGameNamespace,
  createGameNamespaceTokenPublic,
  createGameVersion,
  deleteGameBuild,
  deleteGameCdnSite,
  deleteGameNamespace,
  deleteGameVersion,
  ERRORS,
  type ErrorCode,
  FORMATS,
  findLobby,
  type Operation,
  playerConnected,
  playerDisconnected,
  type ResponseOf,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import type { CallInput, Client } from '@musterhost/contract/client'
import { Ajv, type ValidateFunction } from 'ajv'
import fc from 'fast-check'
import { verify } from '../../src/backup/command.ts'
import { apiAddress, buildBody, newGame, type Presigned, tarGz } from '../cloud/steps.ts'
import { LONG_MS } from '../http/steps.ts'
import { type Platform, startPlatform } from '../support/platform.ts'

const SEQUENCES = Number(process.env.TEST_SEQUENCES ?? 20)
const STEPS_MAX = 60
const seed = process.env.TEST_FUZZ_SEED === undefined ? {} : { seed: Number(process.env.TEST_FUZZ_SEED) }

type Thing = { kind: 'site' | 'build'; id: string; upload_id: string; presigned: Presigned; bytes: Uint8Array } & {
  has_arrived: boolean
  is_complete: boolean
  is_gone: boolean
}
type Version = { version_id: string; things: Thing[]; is_gone: boolean }
type Namespace = { namespace_id: string; version: Version; player: Client; is_gone: boolean }
type Seat = {
  token: string
  server: Client
  namespace: Namespace
  version: Version
  state: 'reserved' | 'connected' | 'left'
}
type Model = { things: Thing[]; versions: Version[]; namespaces: Namespace[]; seats: Seat[] }

/** The item at that place of a list that is not empty. */
const pick = <T>(items: readonly T[], at: number): T | undefined => items[at % Math.max(items.length, 1)]

const ajv = new Ajv({ formats: FORMATS as Record<string, (text: string) => boolean>, strict: false })
const validators = new Map<string, ValidateFunction>()

function isAnswer(operation: Operation, answer: unknown): boolean {
  const known = validators.get(operation.id) ?? ajv.compile(operation.response)
  validators.set(operation.id, known)
  return known(answer)
}

/** Asserts that the call is answered as `expected` says, in the form of the contract; null when it is refused. */
/** Then whether their lobby still stands is the clock's and the last deploy's to say: nothing is tried that rests on it. */
function haveAllLeft(seats: readonly Seat[]): boolean {
  return seats.length > 0 && seats.every((seat) => seat.state === 'left')
}

async function call<O extends Operation>(
  client: Client,
  operation: O,
  input: CallInput<O>,
  expected: 'taken' | ErrorCode,
): Promise<ResponseOf<O> | null> {
  try {
    const answer = await client.call(operation, input)
    assert.equal('taken', expected, operation.id)
    assert.ok(isAnswer(operation, answer), `${operation.id}: ${JSON.stringify(answer)}`)
    return answer
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    assert.equal(error.code, expected, `${operation.id}: ${error.message}`)
    assert.ok(ERRORS[error.code as ErrorCode].status < 500)
    return null
  }
}

type Step = (at: number) => Promise<unknown>

async function stepsOf(platform: Platform, archive: Buffer): Promise<Record<string, Step>> {
  const { client } = platform
  const game = await newGame(platform)
  const params = { game_id: game.game_id }
  const model: Model = { things: [], versions: [], namespaces: [], seats: [] }
  const name = (): string => `n${randomUUID().slice(0, 8)}`
  const uses = (thing: Thing): boolean =>
    model.versions.some(({ is_gone, things }) => !is_gone && things.includes(thing))
  const prepared = { has_arrived: false, is_complete: false, is_gone: false }
  const playerOf = async (namespace_id: string): Promise<Client> => {
    const { token } = await client.call(createGameNamespaceTokenPublic, { params: { ...params, namespace_id } })
    return platform.as(token)
  }
  const empty: Version = { version_id: game.version_id, things: [], is_gone: false }
  model.versions.push(empty)
  for (const namespace_id of [game.prod_id, game.staging_id]) {
    model.namespaces.push({ namespace_id, version: empty, player: await playerOf(namespace_id), is_gone: false })
  }

  return {
    async prepareSite() {
      const bytes = Buffer.from('hello')
      const body = { display_name: name(), files: [{ path: 'index.html', content_length: bytes.length }] }
      const site = (await call(client, createGameCdnSite, { params, body }, 'taken'))!
      const [presigned] = site.presigned_requests
      const { site_id: id, upload_id } = site
      model.things.push({ kind: 'site', id, upload_id, presigned: presigned!, bytes, ...prepared })
    },
    async prepareBuild() {
      const body = { ...buildBody(archive), image_tag: `${name()}:1` }
      const build = (await call(client, createGameBuild, { params, body }, 'taken'))!
      const { build_id: id, upload_id, image_presigned_request: presigned } = build
      model.things.push({ kind: 'build', id, upload_id, presigned: presigned!, bytes: archive, ...prepared })
    },
    async send(at) {
      const thing = pick(model.things, at)
      if (thing === undefined) return
      const { presigned, bytes, is_gone, is_complete } = thing
      const answer = await fetch(apiAddress(platform, presigned), { method: 'PUT', body: new Uint8Array(bytes) })
      assert.equal(answer.status, is_gone ? 404 : is_complete ? 409 : 200, await answer.text())
      if (answer.ok) thing.has_arrived = true
    },
    async complete(at) {
      const thing = pick(model.things, at)
      if (thing === undefined) return
      const expected = thing.is_gone ? 'UPLOAD_NOT_FOUND' : thing.has_arrived ? 'taken' : 'UPLOAD_INCOMPLETE'
      await call(client, completeUpload, { params: { upload_id: thing.upload_id } }, expected)
      thing.is_complete = expected === 'taken'
    },
    async makeVersion(at) {
      const site = pick(
        model.things.filter(({ kind }) => kind === 'site'),
        at,
      )
      const build = pick(
        model.things.filter(({ kind }) => kind === 'build'),
        at,
      )
      const things = [site, build].filter((thing) => thing !== undefined)
      const is_good = things.every(({ is_complete, is_gone }) => is_complete && !is_gone)
      const docker = { args: ['node', 'server.js'], ports: { game: { protocol: 'http' as const } } }
      const config = {
        ...(site === undefined ? {} : { cdn: { site_id: site.id } }),
        ...(build === undefined
          ? {}
          : {
              matchmaker: {
                docker: { ...docker, image_id: build.id },
                game_modes: { default: { max_players: 2, idle_grace_ms: LONG_MS } },
              },
            }),
      }
      const expected = is_good ? 'taken' : 'VALIDATION_ERROR'
      const body = { display_name: name(), config }
      const version = await call(client, createGameVersion, { params, body }, expected)
      if (version !== null) model.versions.push({ version_id: version.version_id, things, is_gone: false })
    },
    async makeNamespace(at) {
      const version = pick(model.versions, at)!
      const body = { display_name: name(), name_id: name(), version_id: version.version_id }
      const expected = version.is_gone ? 'VERSION_NOT_FOUND' : 'taken'
      const made = await call(client, createGameNamespace, { params, body }, expected)
      if (made === null) return
      const { namespace_id } = made
      model.namespaces.push({ namespace_id, version, player: await playerOf(namespace_id), is_gone: false })
    },
    async deploy(at) {
      const [namespace, version] = [pick(model.namespaces, at)!, pick(model.versions, at >> 3)!]
      const { namespace_id } = namespace
      const { version_id } = version
      const expected = namespace.is_gone ? 'NAMESPACE_NOT_FOUND' : version.is_gone ? 'VERSION_NOT_FOUND' : 'taken'
      const call_params = { ...params, namespace_id }
      const deployed = call(client, updateGameNamespaceVersion, { params: call_params, body: { version_id } }, expected)
      await (expected === 'taken' ? platform.notified(deployed) : deployed)
      if (expected === 'taken') namespace.version = version
    },
    async find(at) {
      const namespace = pick(model.namespaces, at)!
      const { version, is_gone, player, namespace_id } = namespace
      const runs = version.things.some(({ kind }) => kind === 'build')
      const of_client = model.seats.filter((seat) => seat.namespace === namespace && seat.state !== 'left').length
      const expected = is_gone
        ? 'NAMESPACE_NOT_FOUND'
        : !runs
          ? 'MATCHMAKER_GAME_MODE_NOT_FOUND'
          : of_client >= 8
            ? 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'
            : 'taken'
      const found = await call(player, findLobby, { body: { game_modes: ['default'] } }, expected)
      if (found === null) return
      const { lobby, player: seated } = found
      const server = platform.as(platform.lobbyToken({ lobby_id: lobby.lobby_id, namespace_id }))
      model.seats.push({ token: seated.token, server, namespace, version, state: 'reserved' })
    },
    async connect(at) {
      const seat = pick(model.seats, at)
      if (seat === undefined) return
      const refusal = {
        reserved: 'taken',
        connected: 'MATCHMAKER_PLAYER_ALREADY_CONNECTED',
        left: 'MATCHMAKER_PLAYER_REMOVED',
      } as const
      await call(seat.server, playerConnected, { body: { player_token: seat.token } }, refusal[seat.state])
      if (seat.state === 'reserved') seat.state = 'connected'
    },
    async disconnect(at) {
      const seat = pick(model.seats, at)
      if (seat === undefined) return
      await call(seat.server, playerDisconnected, { body: { player_token: seat.token } }, 'taken')
      seat.state = 'left'
    },
    async removeThing(at) {
      const thing = pick(model.things, at)
      if (thing === undefined) return
      const { kind, id, is_gone } = thing
      if (kind === 'site') {
        const expected = is_gone ? 'SITE_NOT_FOUND' : uses(thing) ? 'IN_USE' : 'taken'
        await call(client, deleteGameCdnSite, { params: { ...params, site_id: id } }, expected)
      } else {
        const expected = is_gone ? 'BUILD_NOT_FOUND' : uses(thing) ? 'IN_USE' : 'taken'
        await call(client, deleteGameBuild, { params: { ...params, build_id: id } }, expected)
      }
      thing.is_gone ||= !uses(thing)
    },
    async removeVersion(at) {
      const version = pick(model.versions, at)!
      // Lobbies stay here for as long as a test lasts.
      if (haveAllLeft(model.seats.filter((seat) => seat.version === version))) return
      const is_used =
        model.namespaces.some((namespace) => !namespace.is_gone && namespace.version === version) ||
        model.seats.some((seat) => seat.version === version)
      const expected = version.is_gone ? 'VERSION_NOT_FOUND' : is_used ? 'IN_USE' : 'taken'
      await call(client, deleteGameVersion, { params: { ...params, version_id: version.version_id } }, expected)
      version.is_gone ||= !is_used
    },
    async removeNamespace(at) {
      const namespace = pick(model.namespaces, at)!
      const seats = model.seats.filter((seat) => seat.namespace === namespace)
      if (haveAllLeft(seats)) return
      const is_used = seats.length > 0
      const expected = namespace.is_gone ? 'NAMESPACE_NOT_FOUND' : is_used ? 'IN_USE' : 'taken'
      const { namespace_id } = namespace
      const removed = call(client, deleteGameNamespace, { params: { ...params, namespace_id } }, expected)
      await (expected === 'taken' ? platform.notified(removed) : removed)
      namespace.is_gone ||= !is_used
    },
  }
}

/** The way that games go, so that sequences get far; the rest comes between. */
const WAY = ['prepareSite', 'prepareBuild', 'send', 'complete', 'makeVersion', 'deploy', 'find', 'connect'] as const
const REST = [
  'disconnect',
  'removeThing',
  'removeVersion',
  'removeNamespace',
  'makeNamespace',
  'find',
  'connect',
] as const

test('in whatever order a game is worked on, each call answers as it must, and all is whole at the end', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const archive = await tarGz({ 'server.js': 'console.log(1)' })
  const taken = new Map<string, number>()
  const moves = fc.array(
    fc.tuple(fc.oneof({ arbitrary: fc.constantFrom(...WAY), weight: 3 }, fc.constantFrom(...REST)), fc.nat(63)),
    { minLength: STEPS_MAX / 2, maxLength: STEPS_MAX, size: 'max' },
  )
  const property = fc.asyncProperty(moves, async (sequence) => {
    const steps = await stepsOf(platform, archive)
    // Each kind of thing is there once before chance takes over.
    const start = [
      ['prepareSite', 0],
      ['prepareBuild', 1],
      ['send', 0],
      ['send', 1],
      ['complete', 0],
      ['complete', 1],
      ['makeVersion', 0],
      ['deploy', 8],
    ] as const
    for (const [name, at] of [...start, ...sequence]) {
      await steps[name]!(at)
      taken.set(name, (taken.get(name) ?? 0) + 1)
    }
  })
  await fc.assert(property, { numRuns: SEQUENCES, endOnFailure: true, ...seed })
  for (const name of [...WAY, ...REST]) assert.ok((taken.get(name) ?? 0) > 5, `${name} was hardly tried`)

  const { ctx, data_dir } = platform
  const env = { MUSTER_DATA: data_dir, DATABASE_URL: ctx.config.database_url! }
  await platform.close()
  const { is_good, lines } = await verify(env, null)
  assert.equal(is_good, true, lines.join('\n'))
})
