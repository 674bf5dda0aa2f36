// Players who connect and leave.
import * as decide from '../../../src/matchmaker/book/decide.ts'
import * as plain from '../plain-book/players.ts'
import { type Command, withoutResult } from './draw.ts'
import { pick } from './steps.ts'

export const PLAYER_COMMANDS = {
  connected({ book, reference, player_id, own_lobby, call_key, plain_call, now_ms }) {
    return {
      decision: decide.connected(book, { player_id, lobby_id: own_lobby, connect_key: call_key }, now_ms),
      expected: plain.connected(reference, plain_call, now_ms),
    }
  },

  disconnected({ book, reference, player_id, own_lobby, call_key, plain_call, now_ms }) {
    return {
      decision: decide.disconnected(book, { player_id, lobby_id: own_lobby, disconnect_key: call_key }, now_ms),
      expected: plain.disconnected(reference, plain_call, now_ms),
    }
  },

  dropped({ book, reference, player_id, own_lobby, call_key, plain_call, choice, now_ms }) {
    const hold_ms = pick([0, 500, 60_000], choice >> 3)
    return {
      decision: decide.disconnected(
        book,
        { player_id, lobby_id: own_lobby, disconnect_key: call_key, hold_ms },
        now_ms,
      ),
      expected: plain.disconnected(reference, { ...plain_call, hold: hold_ms }, now_ms),
    }
  },

  expel({ book, reference, player_id, own_lobby, plain_call, now_ms }) {
    return {
      decision: withoutResult(decide.expel(book, { player_id, lobby_id: own_lobby }, now_ms)),
      expected: plain.expel(reference, plain_call, now_ms),
    }
  },

  release({ book, reference, player_id, now_ms }) {
    return {
      decision: decide.release(book, player_id, now_ms),
      expected: plain.release(reference, player_id, now_ms),
    }
  },
} satisfies Record<string, Command>
