// Games whose finds need a captcha of the test's own provider.
import type { TestContext } from 'node:test'
import type { VersionConfig } from '@musterhost/contract'
import { LONG_MS, TRUSTING } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { type CaptchaServer, SECRET, SITE_KEY, startCaptchaServer } from './captcha-server.ts'

export const KEYS = { site_key: SITE_KEY, secret_key: SECRET }
type Captcha = NonNullable<NonNullable<VersionConfig['matchmaker']>['captcha']>
export const CAPTCHA: Captcha = { requests_before_reverify: 2, verification_ttl: 240_000, turnstile: KEYS }
export const MANY = { max_players_per_client: 1_000, lobby_count_max: 1_000 }

export const settings = (server: CaptchaServer) => ({
  ...TRUSTING,
  MUSTER_TURNSTILE_URL: server.url,
  MUSTER_HCAPTCHA_URL: server.url,
})

export async function startWithCaptcha(t: TestContext): Promise<{ platform: Platform; server: CaptchaServer }> {
  const server = await startCaptchaServer(t)
  const platform = await startPlatform(t, { env: settings(server) })
  platform.playServers()
  return { platform, server }
}

export function gameWith(platform: Platform, captcha: Partial<Captcha> = {}): Promise<TestGame> {
  const actions = { create: { enabled: true, enable_public: true } }
  const game_modes = { default: { max_players: 256, idle_grace_ms: LONG_MS, actions } }
  return platform.game({ matchmaker: { game_modes, captcha: { ...CAPTCHA, ...captcha } }, limits: MANY })
}

export const turnstile = (client_response: string) => ({ captcha: { turnstile: { client_response } } })
