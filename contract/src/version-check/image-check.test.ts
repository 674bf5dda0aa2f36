// What a version config may say about a container image.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkVersionConfig } from './check.ts'
import { checkImageMembers } from './image-check.ts'

const image_id = '0190163d-8694-739b-aea5-966c26f8ad91'
type Docker = NonNullable<NonNullable<Parameters<typeof checkVersionConfig>[1]['matchmaker']>['docker']>

function refusalsOf(docker: Docker, images: ReadonlySet<string> = new Set()): string[] {
  const config = { matchmaker: { docker: { image_id, ...docker }, game_modes: { default: {} } } }
  return checkVersionConfig(null, config, images).map(({ path, reason }) => `${path.slice(1).join('.')} ${reason}`)
}

test('an entrypoint or args name the program, and an entrypoint replaces that of the image', () => {
  assert.deepEqual(refusalsOf({}), ['docker.args too_few'])
  assert.deepEqual(refusalsOf({}, new Set([image_id])), [])
  assert.deepEqual(refusalsOf({ entrypoint: ['/server'] }), [])
  assert.deepEqual(refusalsOf({ entrypoint: [] }, new Set([image_id])), ['docker.args too_few'])
  assert.deepEqual(refusalsOf({ entrypoint: [], args: ['/server'] }, new Set([image_id])), [])
})

test('placeholders of an entrypoint, the folder and the numbers of a user are checked', () => {
  assert.deepEqual(refusalsOf({ entrypoint: ['/server', `\${PORT_NONE}`] }), [
    'docker.entrypoint.1 unknown_placeholder',
  ])
  const args = ['server']
  assert.deepEqual(refusalsOf({ args, working_folder: '/srv/../etc' }), ['docker.working_folder invalid'])
  assert.deepEqual(refusalsOf({ args, working_folder: '/srv/..game' }), [])
  assert.deepEqual(refusalsOf({ args, user: '65535:65535' }), [])
  assert.deepEqual(refusalsOf({ args, user: '65536' }), ['docker.user too_high'])
  assert.deepEqual(refusalsOf({ args, user: '0:70000' }), ['docker.user too_high'])
})

test('an image of a registry has a digest, and the operator allows its registry', () => {
  const digest = `sha256:${'0a'.repeat(32)}`
  const registries = [
    { host: 'registry.example.com', prefix: '' },
    { host: 'localhost:5000', prefix: 'games/arena' },
  ]
  const refusalOf = (image: string, members: Docker = {}): string => {
    const [error] = checkImageMembers({ image, ...members }, registries, ['docker'])
    return error === undefined ? 'accepted' : `${error.path.join('.')} ${error.reason}: ${error.message}`
  }
  assert.equal(refusalOf(`registry.example.com/a/b@${digest}`), 'accepted')
  assert.equal(refusalOf(`registry.example.com/a:1@${digest}`), 'accepted')
  assert.equal(refusalOf(`localhost:5000/games/arena@${digest}`), 'accepted')
  assert.equal(refusalOf(`localhost:5000/games/arena/one@${digest}`), 'accepted')
  for (const foreign of ['localhost:5000/games/arena2', 'localhost/games/arena', 'registry.example.com.evil.org/a']) {
    assert.match(refusalOf(`${foreign}@${digest}`), /^docker\.image not_allowed: .* MUSTER_REGISTRIES\.$/, foreign)
  }
  assert.match(
    refusalOf('registry.example.com/a:latest'),
    /^docker\.image needs_digest: .*the tag latest, which may change/,
  )
  assert.match(refusalOf('registry.example.com/a'), /^docker\.image needs_digest: .*has no digest/)
  const malformed = ['a', `a@${digest}`, `team/a@${digest}`, `registry.example.com/A@${digest}`]
  for (const name of [...malformed, `registry.example.com/../a@${digest}`, 'registry.example.com/a@sha256:0']) {
    assert.match(refusalOf(name), /^docker\.image invalid: /, name)
  }
  assert.match(refusalOf(`registry.example.com/a@${digest}`, { image_id }), /^docker\.image conflicts: /)
})
