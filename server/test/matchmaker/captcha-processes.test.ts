// Captchas over the end of a matchmaker: the one that writes is killed, and the one that stood by goes on.
import assert from 'node:assert/strict'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type ApiError, findLobby } from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { LONG_MS, withKey } from '../http/steps.ts'
import { type Program, runProgram } from '../supervisor/program.ts'
import { freePorts } from '../support/free-ports.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { type CaptchaServer, SECRET, SITE_KEY, startCaptchaServer } from './captcha-server.ts'

const WRONG_SECRET = 'planted-wrong-secret'

test('a response that one matchmaker has claimed is refused by the next, and a secret is in no log and no error', async (t) => {
  const provider = await startCaptchaServer(t)
  // The roles that a captcha concerns are the programs; this one only plays the lobbies' servers.
  const platform = await startPlatform(t, { roles: 'edge' })
  const { api_port, matchmaker_port, lobby_api_port } = platform.ctx.config
  const first = start(t, platform, provider, {
    MUSTER_DATA: platform.data_dir,
    MUSTER_ROLES: 'api,matchmaker',
    MUSTER_API_PORT: String(api_port),
    MUSTER_MATCHMAKER_PORT: String(matchmaker_port),
    MUSTER_LOBBY_API_PORT: String(lobby_api_port),
  })
  await until('the first matchmaker', () => first.output().includes(`:${matchmaker_port}`))
  platform.playServers()
  const game = await gameWith(platform, SECRET)
  const broken = await gameWith(platform, WRONG_SECRET)
  const errors: ApiError[] = []
  const refused = async (code: string, player: Client, response: string): Promise<void> => {
    const error = await failureOf(find(player, response))
    assert.equal(error.code, code)
    errors.push(error)
  }

  const spent = provider.solve()
  await find(game.player, spent)
  await refused('CAPTCHA_CAPTCHA_FAILED', game.player, 'made up')
  await refused('CAPTCHA_PROVIDER_FAILED', broken.player, 'of the wrong secret')
  provider.misbehave((response) => response.writeHead(500).end(SECRET))
  await refused('CAPTCHA_PROVIDER_FAILED', game.player, 'of a bad moment')
  // Killed while the provider thinks: the response is claimed and not answered.
  provider.misbehave(() => {})
  const [claimed, key] = [provider.solve(), withKey()]
  const asked = provider.asked.length
  const lost = find(game.player, claimed, key)
  await until('the provider to be asked', () => provider.asked.length > asked)
  first.kill('SIGKILL')
  await assert.rejects(lost)
  provider.misbehave(null)

  const { standby, url } = await startStandby(t, platform, provider)
  const heir = createClient({ url, token: game.public_token })
  await until('the other matchmaker to take over', () => find(heir).then(Boolean, () => false))
  await refused('CAPTCHA_CAPTCHA_FAILED', heir, spent)
  await refused('CAPTCHA_CAPTCHA_FAILED', heir, claimed)
  assert.equal(provider.asked.length, asked + 1, 'neither was asked for again')
  await find(heir, claimed, key)

  const told = errors.map(({ message, metadata }) => JSON.stringify({ message, metadata }))
  const said = [first.output(), standby.output(), ...told].join('\n')
  assert.match(said, /captcha provider failed/)
  assert.match(said, /does not accept the secret key/)
  for (const secret of [SECRET, WRONG_SECRET, spent, claimed]) assert.ok(!said.includes(secret), secret)
})

/** The next matchmaker is another node, with a data folder of its own and the keys of the first. */
async function startStandby(t: TestContext, platform: Platform, provider: CaptchaServer) {
  const folder = await mkdtemp(join(tmpdir(), 'muster-standby-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await cp(join(platform.data_dir, 'keys'), join(folder, 'keys'), { recursive: true })
  const [port, lobby_api_port] = await freePorts(2)
  const standby = start(t, platform, provider, {
    MUSTER_DATA: folder,
    MUSTER_ROLES: 'matchmaker',
    MUSTER_MATCHMAKER_PORT: String(port),
    MUSTER_LOBBY_API_PORT: String(lobby_api_port),
  })
  return { standby, url: `http://127.0.0.1:${port}` }
}

function start(t: TestContext, { ctx }: Platform, provider: CaptchaServer, settings: Record<string, string>): Program {
  const program = runProgram({
    DATABASE_URL: ctx.config.database_url!,
    MUSTER_TURNSTILE_URL: provider.url,
    MUSTER_IP_SEED: 'off',
    MUSTER_RATE_LIMIT_SEATS: '0',
    MUSTER_LOG_LEVEL: 'debug',
    ...settings,
  })
  t.after(async () => {
    program.kill('SIGKILL')
    await program.code
  })
  return program
}

function gameWith(platform: Platform, secret_key: string): Promise<TestGame> {
  const captcha = {
    requests_before_reverify: 600,
    verification_ttl: LONG_MS,
    turnstile: { site_key: SITE_KEY, secret_key },
  }
  const game_modes = { default: { max_players: 256, idle_grace_ms: LONG_MS } }
  return platform.game({ matchmaker: { captcha, game_modes }, limits: { max_players_per_client: 1_000 } })
}

function find(player: Client, client_response?: string, how: { headers?: Record<string, string> } = {}) {
  const captcha = client_response === undefined ? {} : { captcha: { turnstile: { client_response } } }
  return player.call(findLobby, { body: { game_modes: ['default'], ...captcha }, ...how })
}
