// Ids for what a command may bring into being.
import { newId } from '../../ids.ts'
import type { FreshIds, SeatWish } from '../book/commands.ts'
import { PARTY_MEMBERS_MAX } from '../book/parties.ts'

export function freshIds({ party }: Pick<SeatWish, 'party'>, now_ms: number): FreshIds {
  const member_ids = party === null ? [] : Array.from({ length: PARTY_MEMBERS_MAX - 1 }, () => newId(now_ms))
  return { lobby_id: newId(now_ms), player_id: newId(now_ms), member_ids }
}
