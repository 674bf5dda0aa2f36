import {
  checkSignInIssuer,
  completeProviderSignIn,
  deleteSignInProvider,
  listOpenSignInProviders,
  listSignInProviders,
  putSignInProvider,
  startProviderSignIn,
} from '@musterhost/contract'
import type { LoadSignInWork } from '../../identity/providers/open.ts'
import * as providers from '../../identity/providers/providers.ts'
import { type Implementation, implement } from '../implement.ts'
import { flowCookie, readFlowCookie, sessionCookie } from './cookie.ts'
import { deviceOf, refuseForeign } from './login.ts'

export const signInProviders = (loadSignInWork: LoadSignInWork): Implementation[] => [
  implement(listOpenSignInProviders, ({ ctx }) => providers.listOpenProviders(ctx)),
  implement(startProviderSignIn, async ({ ctx, origin, params, body, setCookie }) => {
    refuseForeign(ctx, origin)
    const { start } = await loadSignInWork()
    const { url, cookie } = await start(ctx, { name: params.provider_name, to: body.to })
    setCookie(flowCookie(ctx.config, cookie))
    return { url }
  }),
  implement(completeProviderSignIn, async (request) => {
    const { ctx, origin, params, body, cookie, setCookie } = request
    refuseForeign(ctx, origin)
    const { complete } = await loadSignInWork()
    const device = deviceOf(request)
    const flow = readFlowCookie(ctx.config, cookie)
    const { session, to } = await complete(ctx, { name: params.provider_name, cookie: flow, returned: body, device })
    setCookie(sessionCookie(ctx.config, session.refresh_token))
    setCookie(flowCookie(ctx.config, ''))
    return { to }
  }),
  implement(listSignInProviders, ({ ctx }) => providers.listProviders(ctx)),
  implement(putSignInProvider, ({ ctx, params, body }) => providers.putProvider(ctx, params.provider_name, body)),
  implement(deleteSignInProvider, ({ ctx, params }) => providers.deleteProvider(ctx, params.provider_name)),
  implement(checkSignInIssuer, async ({ body }) => (await loadSignInWork()).check(body.issuer)),
]
