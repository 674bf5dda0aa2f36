// What needs the libraries of OpenID Connect. open.ts loads it at the first sign-in.
import type { Context } from '../../context.ts'
import { check } from './check.ts'
import { createIssuers, type Issuers } from './issuers.ts'
import { complete, start } from './sign-in.ts'
import { endSessionUrl, logOut } from './sign-out.ts'

type Without<F> = F extends (ctx: infer C, issuers: Issuers, ...rest: infer R) => infer T
  ? (ctx: C, ...rest: R) => T
  : never

export type SignInWork = {
  start: Without<typeof start>
  complete: Without<typeof complete>
  endSessionUrl: Without<typeof endSessionUrl>
  logOut: Without<typeof logOut>
  check: (issuer: string) => ReturnType<typeof check>
}

export function createSignInWork(ctx: Context): SignInWork {
  const issuers = createIssuers(ctx)
  return {
    start: (of, wish) => start(of, issuers, wish),
    complete: (of, given) => complete(of, issuers, given),
    endSessionUrl: (of, provider_id) => endSessionUrl(of, issuers, provider_id),
    logOut: (of, given) => logOut(of, issuers, given),
    check: (issuer) => check(issuers, issuer),
  }
}
