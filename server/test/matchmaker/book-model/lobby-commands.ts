// What lobby servers and the platform report about lobbies.
import * as decide from '../../../src/matchmaker/book/decide.ts'
import { changeOwn } from '../../../src/matchmaker/book/own-lobby.ts'
import * as plain from '../plain-book/lobbies.ts'
import { at, VERSION } from '../plain-requests.ts'
import { type Command, withoutResult } from './draw.ts'
import { pick, TAGS } from './steps.ts'

export const LOBBY_COMMANDS = {
  ready({ book, reference, lobby, now_ms }) {
    return { decision: decide.ready(book, lobby, now_ms), expected: plain.ready(reference, lobby, now_ms) }
  },

  closed({ book, reference, lobby, choice }) {
    const closed = choice % 2 === 0
    return {
      decision: decide.setClosed(book, lobby, closed),
      expected: plain.patchLobby(reference, lobby, { closed }),
    }
  },

  changed({ book, reference, lobby, actor, choice, now_ms }) {
    const keep = pick([undefined, 0, 500, 60_000, 600_000], choice)
    const tags = pick([undefined, ...TAGS], actor)
    const asked = { lobby_id: lobby, ...(keep !== undefined && { keep_ms: keep }), ...(tags !== undefined && { tags }) }
    return {
      decision: withoutResult(changeOwn(book, asked, now_ms)),
      expected: plain.changeOwn(reference, lobby, { keep, tags }, now_ms),
    }
  },

  stalled({ book, reference, lobby, choice, now_ms }) {
    const is_stalled = choice % 2 === 0
    return {
      decision: decide.setStalled(book, lobby, is_stalled, now_ms),
      expected: plain.stall(reference, lobby, is_stalled, now_ms),
    }
  },

  state({ book, reference, lobby, choice }) {
    const state = pick([null, '1', '{}'], choice)
    return { decision: decide.setState(book, lobby, state), expected: plain.patchLobby(reference, lobby, { state }) }
  },

  stop({ book, reference, lobby, now_ms }) {
    return {
      decision: withoutResult(decide.stop(book, lobby, 'exited', now_ms)),
      expected: plain.stop(reference, lobby, 'exited', now_ms),
    }
  },

  prepare({ book, reference, request, actor, plan, ids, now_ms }) {
    const { lobby_count_max } = request
    const idle_min = pick([1, 2, 3], actor)
    return {
      decision: withoutResult(decide.prepare(book, { plan, idle_min, lobby_count_max }, ids.lobby_id, at(now_ms))),
      expected: plain.prepare(reference, { plan, idle_min, lobby_max: lobby_count_max }, ids.lobby_id, now_ms),
    }
  },

  drain({ book, reference, choice }) {
    const is_draining = choice % 3 === 0
    return {
      decision: decide.setDraining(book, VERSION, is_draining),
      expected: plain.drain(reference, VERSION, is_draining),
    }
  },
} satisfies Record<string, Command>
