// A game mode inherits each member of `matchmaker.docker` that its own docker block does not have.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DockerBlock, replacedDockerMembers } from './docker-block.ts'
import { gameModesOf } from './game-modes.ts'
import { checkVersionConfig } from './version-check/check.ts'

const image_id = '0190163d-8694-739b-aea5-966c26f8ad91'
const other_id = '0190163d-8694-739b-aea5-966c26f8ad92'
const SHARED: DockerBlock = {
  image_id,
  args: ['node', 'main.mjs'],
  env: { LEVEL: 'info', SIZE: '1' },
  ports: { game: { protocol: 'http' }, voice: { protocol: 'udp' } },
  ready: 'listening',
  seats: 'edge',
  hold_ms: 5_000,
}

function modeOf(docker: DockerBlock, shared = SHARED) {
  const config = { matchmaker: { docker: shared, game_modes: { sprint: { docker } } } }
  assert.deepEqual(checkVersionConfig(null, config, new Set([image_id, other_id])), [])
  return gameModesOf(config).get('sprint')!
}

function wrongs(shared: DockerBlock, ...modes: (DockerBlock | undefined)[]): string[] {
  const game_modes = Object.fromEntries(modes.map((docker, at) => [`m${at}`, docker === undefined ? {} : { docker }]))
  const errors = checkVersionConfig(null, { matchmaker: { docker: shared, game_modes } })
  return errors.map(({ path, reason }) => `${path.slice(1).join('.')} ${reason}`)
}

const replaced = (docker: DockerBlock, shared = SHARED) =>
  replacedDockerMembers({ docker: shared, game_modes: { sprint: { docker } } }).map(
    ({ path, message }) => `${path.slice(2).join('.')}: ${message}`,
  )

test('a game mode with args alone keeps the ports, the readiness and the seats of matchmaker.docker', () => {
  const mode = modeOf({ args: ['node', 'main.mjs', 'sprint'] })
  assert.deepEqual(mode.args, ['node', 'main.mjs', 'sprint'])
  assert.equal(mode.image_id, image_id)
  assert.deepEqual(
    mode.ports.map(({ name, admission }) => [name, admission?.by[0]]),
    [
      ['game', 'query'],
      ['voice', 'handshake'],
    ],
  )
  assert.deepEqual([mode.ready, mode.seat_hold_ms], ['listening', 5_000])
  assert.deepEqual(modeOf({ env: { SIZE: '2' } }).env, { LEVEL: 'info', SIZE: '2' })
})

test('a member of the game mode replaces the shared one as a whole, and the check names what does not apply', () => {
  const docker: DockerBlock = { ports: { game: { protocol: 'http' } }, env: { SIZE: '2', LEVEL: 'info' }, ready: 'sdk' }
  const mode = modeOf(docker)
  assert.deepEqual([mode.ports.map(({ name }) => name), mode.ready], [['game'], null])
  assert.deepEqual(replaced(docker), [
    'sprint.docker.ports: The game mode sprint replaces ports of matchmaker.docker. It does not have voice.',
    'sprint.docker.ready: The game mode sprint replaces ready of matchmaker.docker.',
    'sprint.docker.env.SIZE: The game mode sprint replaces the variable SIZE of matchmaker.docker.',
  ])
  assert.deepEqual(replaced({ ...SHARED }), [])
})

test('a game mode with another build does not inherit how the shared build is started', () => {
  const mode = modeOf({ image_id: other_id }, { ...SHARED, user: '1000' })
  assert.deepEqual([mode.image_id, mode.args, mode.image.user, mode.ports.length], [other_id, [], null, 2])
  const image = `registry.example.com/a@sha256:${'0a'.repeat(32)}`
  assert.deepEqual([modeOf({ image }).image_id, modeOf({ image }).registry_image], [null, image])
  assert.deepEqual(replaced({ image }), [
    'sprint.docker.image: The game mode sprint runs another build than matchmaker.docker, so args of matchmaker.docker does not apply to it.',
  ])
  // Where matchmaker.docker names no build, its args are for all of them.
  assert.deepEqual(modeOf({ image_id }, { args: ['node', 'a.mjs'] }).args, ['node', 'a.mjs'])
})

test('an error names the block that the member comes from, and a member that one game mode uses is none', () => {
  const ready: DockerBlock = { image_id, args: ['a'], ready: 'listening' }
  assert.deepEqual(wrongs(ready, {}), ['docker.ready no_ports'])
  assert.deepEqual(wrongs(ready, { ports: { game: {} } }), [])
  assert.deepEqual(wrongs({ image_id, args: ['a'] }, { ready: 'listening' }), ['game_modes.m0.docker.ready no_ports'])
  assert.deepEqual(wrongs({ image_id, args: ['a'], hold_ms: 5 }, { seats: 'edge' }, undefined), [])
  assert.deepEqual(wrongs(SHARED, { seats: 'sdk' }, undefined), [])
  assert.deepEqual(wrongs(SHARED, { seats: 'sdk' }), [])
  assert.deepEqual(wrongs({ image_id, args: ['a'] }, { hold_ms: 5 }, { seats: 'edge' }), [
    'game_modes.m0.docker.hold_ms needs_edge_seats',
  ])
})
