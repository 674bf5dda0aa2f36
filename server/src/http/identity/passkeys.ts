import {
  addPasskey,
  completeConfirmation,
  completePasskeySignIn,
  listPasskeys,
  removePasskey,
  removePasskeysOf,
  renamePasskey,
  startConfirmation,
  startPasskey,
  startPasskeySignIn,
} from '@musterhost/contract'
import * as assertions from '../../identity/passkeys/assertions.ts'
import * as own from '../../identity/passkeys/own-passkeys.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import { type Implementation, implement } from '../implement.ts'
import { sessionCookie } from './cookie.ts'
import { deviceOf, refuseForeign } from './login.ts'

type Person = CallerOf<'admin' | 'user'>

export const passkeys: Implementation[] = [
  implement(listPasskeys, ({ ctx, caller }) => own.listPasskeys(ctx, caller as Person)),
  implement(startPasskey, ({ ctx, caller }) => own.startPasskey(ctx, caller as Person)),
  implement(addPasskey, ({ ctx, caller, body }) => own.addPasskey(ctx, caller as Person, body)),
  implement(renamePasskey, ({ ctx, caller, params, body }) =>
    own.renamePasskey(ctx, caller as Person, params.passkey_id, body.name),
  ),
  implement(removePasskey, ({ ctx, caller, params }) => own.removePasskey(ctx, caller as Person, params.passkey_id)),
  implement(removePasskeysOf, ({ ctx, params }) => own.removePasskeysOf(ctx, params.user_id)),
  implement(startConfirmation, ({ ctx, caller }) => assertions.startConfirmation(ctx, caller as Person)),
  implement(completeConfirmation, ({ ctx, caller, body }) =>
    assertions.completeConfirmation(ctx, caller as Person, body),
  ),
  implement(startPasskeySignIn, ({ ctx, origin }) => {
    refuseForeign(ctx, origin)
    return assertions.startSignIn(ctx)
  }),
  implement(completePasskeySignIn, async (request) => {
    const { ctx, origin, body, setCookie } = request
    refuseForeign(ctx, origin)
    const session = await assertions.completeSignIn(ctx, body, deviceOf(request))
    setCookie(sessionCookie(ctx.config, session.refresh_token))
  }),
]
