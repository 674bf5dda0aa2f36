import assert from 'node:assert'
import { test } from 'node:test'
import type { VersionConfig } from '../version-config.ts'
import { checkVersionConfig } from './check.ts'

type Matchmaker = NonNullable<VersionConfig['matchmaker']>
type Docker = NonNullable<Matchmaker['docker']>

const image_id = '0190163d-8694-739b-aea5-966c26f8ad91'
const PORTS: Docker['ports'] = { game: { protocol: 'udp' }, 'my-web': { protocol: 'http' } }

function wrongs(docker: Docker, mode: Docker | undefined = undefined): string[] {
  const shared: Docker = { image_id, args: ['server'], ports: PORTS, ...docker }
  const game_modes = { default: mode === undefined ? {} : { docker: { image_id, args: ['server'], ...mode } } }
  const errors = checkVersionConfig(null, { matchmaker: { docker: shared, game_modes } })
  return errors.map(({ path, reason }) => `${path.join('.')} ${reason}`)
}

test('placeholders of the lobby and of the ports are accepted in arguments, variables and files', () => {
  const text = '${PORT} ${HOST} ${PORT_GAME} ${PORT_MY_WEB} ${PUBLIC_HOST_GAME}:${PUBLIC_PORT_GAME} ${LOBBY_ID} ${HOME}'
  assert.deepStrictEqual(
    wrongs({
      args: ['server', text],
      env: { A: `${text} $\${ANYTHING}` },
      files: { 'a/b.cfg': '${PLATFORM_REGION_ID}' },
    }),
    [],
  )
})

test('an unknown placeholder is refused where it stands, with the way to write it literally', () => {
  assert.deepStrictEqual(
    wrongs({ args: ['server', '${PORT_OTHER}'], env: { A: '${port_game}' }, files: { 'x.cfg': 'a ${unclosed' } }),
    [
      'matchmaker.docker.args.1 unknown_placeholder',
      'matchmaker.docker.env.A unknown_placeholder',
      'matchmaker.docker.files.x.cfg unknown_placeholder',
    ],
  )
  const shared: Docker = { image_id, args: ['server', '${PORT_OTHER}'] }
  const [error] = checkVersionConfig(null, { matchmaker: { docker: shared, game_modes: { default: {} } } })
  assert.match(error!.message, /\$\$\{/)
})

test('the token of the lobby, and what players send, are no placeholders', () => {
  for (const name of ['TOKEN', 'PLATFORM_TOKEN', 'LOBBY_CONFIG', 'PLATFORM_LOBBY_TAGS']) {
    assert.deepStrictEqual(wrongs({ args: ['server', `\${${name}}`] }), [
      'matchmaker.docker.args.1 unknown_placeholder',
    ])
  }
})

test('a shared variable is checked with the ports of each game mode', () => {
  assert.deepStrictEqual(wrongs({ env: { A: '${PORT_GAME}' } }, { ports: { other: { protocol: 'tcp' } } }), [
    'matchmaker.docker.env.A unknown_placeholder',
  ])
  assert.deepStrictEqual(wrongs({}, { env: { B: '${PORT_GAME}' }, ports: { other: { protocol: 'tcp' } } }), [
    'matchmaker.game_modes.default.docker.env.B unknown_placeholder',
  ])
})

test('a file that would be the folder of another one is refused', () => {
  assert.deepStrictEqual(wrongs({ files: { world: '', 'world/map.txt': '' } }), [
    'matchmaker.docker.files.world/map.txt conflicts',
  ])
})
