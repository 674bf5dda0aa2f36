import {
  completeLinkVerification,
  createSignInLink,
  endOtherSessions,
  endSession,
  listSessions,
} from '@musterhost/contract'
import * as own from '../../identity/own-sessions.ts'
import * as links from '../../identity/sign-in-links.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import { type Implementation, implement } from '../implement.ts'
import { sessionCookie } from './cookie.ts'
import { deviceOf, refuseForeign } from './login.ts'

type Person = CallerOf<'admin' | 'user'>

export const sessions: Implementation[] = [
  implement(completeLinkVerification, async (request) => {
    const { ctx, origin, body, setCookie } = request
    refuseForeign(ctx, origin)
    const session = await links.loginByLink(ctx, body.link, deviceOf(request))
    setCookie(sessionCookie(ctx.config, session.refresh_token))
  }),
  implement(listSessions, ({ ctx, caller }) => own.listSessions(ctx, caller as Person)),
  implement(endSession, ({ ctx, caller, params }) => own.endOwnSession(ctx, caller as Person, params.session_id)),
  implement(endOtherSessions, ({ ctx, caller }) => own.endOtherSessions(ctx, caller as Person)),
  implement(createSignInLink, ({ ctx, caller }) => links.createSignInLink(ctx, caller as CallerOf<'admin'>)),
]
