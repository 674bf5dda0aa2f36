// Requests for a seat, and the captcha before them.
import type { FindRequest, LobbyPlan, RequestedSeat } from '../../../src/matchmaker/book/commands.ts'
import * as decide from '../../../src/matchmaker/book/decide.ts'
import * as captcha from '../plain-book/captcha.ts'
import * as plain from '../plain-book/seats.ts'
import type { SeatRequest } from '../plain-book/state.ts'
import { at, VERSION } from '../plain-requests.ts'
import type { Command, CommandInput, Comparison } from './draw.ts'
import { MODES, pick, REGIONS, TAGS } from './steps.ts'

export const SEAT_COMMANDS = {
  find({ book, reference, request, plain_request, choice, plan, ids, plain_ids, now_ms }) {
    const drawn = drawFind(request, plain_request, choice, plan)
    return {
      decision: decide.find(book, drawn.request, ids, at(now_ms)),
      expected: plain.find(reference, drawn.plain_request, plain_ids, now_ms),
    }
  },

  join({ book, reference, request, plain_request, lobby, ids, plain_ids, now_ms }) {
    return {
      decision: decide.join(book, { ...request, lobby_id: lobby }, ids, now_ms),
      expected: plain.join(reference, { ...plain_request, lobby }, plain_ids, now_ms),
    }
  },

  create({ book, reference, request, plain_request, plan, ids, plain_ids, now_ms }) {
    return {
      decision: decide.create(book, { ...request, is_spectator: false, plan }, ids, at(now_ms)),
      expected: plain.create(reference, { ...plain_request, spectator: false, plan }, plain_ids, now_ms),
    }
  },

  solve_captcha: (input) => admit(input, true),
  count_request: (input) => admit(input, false),
} satisfies Record<string, Command>

export function drawFind(
  request: RequestedSeat,
  plain_request: SeatRequest,
  choice: number,
  drawn_plan: LobbyPlan,
): { request: FindRequest; plain_request: plain.FindRequest } {
  const [modes, regions, tags] = [pick(MODES, choice), pick(REGIONS, choice >> 2), pick(TAGS, choice >> 4)]
  const places = modes.flatMap((game_mode) => regions.map((region) => ({ version_id: VERSION, region, game_mode })))
  const plan = choice % 7 === 0 ? null : drawn_plan
  return {
    request: { ...request, keys: places, tags: Object.entries(tags), plan },
    plain_request: { ...plain_request, modes, regions, tags, plan },
  }
}

function admit({ book, reference, request, choice, now_ms }: CommandInput, is_solved: boolean): Comparison {
  const rules = { requests: pick([1, 2, 3], choice), ttl: pick([500, 60_000], choice >> 2) }
  const captcha_rules = { requests_before_reverify: rules.requests, verification_ttl_ms: rules.ttl }
  return {
    decision: decide.admit(book, request.client_key, captcha_rules, is_solved, now_ms),
    expected: captcha.admit(reference, request.client_key, rules, is_solved, now_ms),
  }
}
