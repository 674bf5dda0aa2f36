// What a program is told before it has any credential.
import type { bootstrap, ResponseOf } from '@muster/contract'
import { mainUrl } from '../config.ts'
import type { Context } from '../context.ts'

export function describePlatform(ctx: Context): ResponseOf<typeof bootstrap> {
  return {
    cluster: 'oss',
    access: ctx.config.access,
    domains: { ...ctx.config.domains },
    origins: { hub: mainUrl(ctx.config) },
    captcha: {},
    login_methods: { access_token: true, email: true },
  }
}
