// Name ids for games that were created without one: made from the display name, with a tail when that is taken.
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'

/** Characters of a `name_id`. */
const NAME_ID_LENGTH_MAX = 16
const TAIL_LENGTH = 6
/** Attempts to find a free `name_id`. */
const ATTEMPTS_MAX = 8

/** What is left of a display name: 'Café Races!' -> 'cafe-races'. Never empty. */
export function toNameId(display_name: string, length_max = NAME_ID_LENGTH_MAX): string {
  const letters = display_name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  const dashed = letters.replace(/[^a-z0-9]+/g, '-').replace(/^-/, '')
  return dashed.slice(0, length_max).replace(/-$/, '') || 'game'
}

/** A name id that no game has at this moment; the table decides who gets it. */
export async function freeNameId(ctx: Context, display_name: string): Promise<string> {
  let name_id = toNameId(display_name)
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const twin = await ctx.db.selectFrom('games').select('game_id').where('name_id', '=', name_id).executeTakeFirst()
    if (twin === undefined) return name_id
    // The end of an id is random.
    name_id = `${toNameId(display_name, NAME_ID_LENGTH_MAX - TAIL_LENGTH - 1)}-${newId(ctx.now()).slice(-TAIL_LENGTH)}`
  }
  return name_id
}
