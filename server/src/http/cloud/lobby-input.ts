import { writeLobbyInput } from '@musterhost/contract'
import * as input from '../../cloud/lobbies/input.ts'
import { type Implementation, implement } from '../implement.ts'

export const lobbyInput: Implementation[] = [
  implement(writeLobbyInput, ({ ctx, caller, params, body }) => input.writeLobbyInput(ctx, caller, params, body.text)),
]
