// What a program can read before it has any credential.
import type { getBootstrap, ResponseOf } from '@musterhost/contract'
import { hasEmailLogin, mainUrl } from '../config/addresses.ts'
import type { Context } from '../context.ts'

export function describePlatform(ctx: Context): ResponseOf<typeof getBootstrap> {
  const site_key = ctx.config.login_turnstile?.site_key
  return {
    cluster: 'oss',
    access: ctx.config.access,
    domains: { ...ctx.config.domains },
    origins: { hub: mainUrl(ctx.config) },
    captcha: site_key === undefined ? {} : { turnstile: { site_key } },
    login_methods: { access_token: true, email: hasEmailLogin(ctx.config) },
  }
}
